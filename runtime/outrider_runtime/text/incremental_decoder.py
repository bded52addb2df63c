"""Text of a growing list of ids, in pieces that add up to the decoding of all of them."""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from outrider_runtime.text.pieces import ByteLevelPieces, ReplacedPieces

if TYPE_CHECKING:
    from outrider_runtime.text.tokenizer import Tokenizer

_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


class IncrementalDecoder:
    """Decodes ids as they come; nothing it returned is ever taken back.

    After `flush`, everything returned adds up to ``tokenizer.decode(all ids)``, whatever the ids are. Each id costs
    the same however many came before. Special tokens and ids outside the vocabulary spell nothing.

    Args:
        tokenizer: gives the spelling of ids.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        pieces = tokenizer.pieces
        self._joiner: _Joiner = _ByteJoiner(pieces) if isinstance(pieces, ByteLevelPieces) else _RunJoiner(pieces)

    def push(self, token_ids: Sequence[int]) -> str:
        """Text that became certain with these ids; an incomplete character is held back."""
        tokens = (self._tokenizer.text_token(token_id) for token_id in token_ids)
        return "".join(self._joiner.join(token) for token in tokens if token is not None)

    def flush(self) -> str:
        """The rest; an incomplete character becomes U+FFFD. No ids may follow."""
        return self._joiner.end()


class _Joiner(Protocol):
    def join(self, token: str) -> str: ...

    def end(self) -> str: ...


class _ByteJoiner:
    """Bytes become text as soon as they complete a character or cannot be part of one."""

    def __init__(self, pieces: ByteLevelPieces) -> None:
        self._pieces = pieces
        self._utf8 = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def join(self, token: str) -> str:
        return self._utf8.decode(self._pieces.spell(token))

    def end(self) -> str:
        return self._utf8.decode(b"", final=True)


class _RunJoiner:
    """A run of byte tokens is shown when it ends, for it is text only if the whole run is valid UTF-8."""

    def __init__(self, pieces: ReplacedPieces) -> None:
        self._pieces = pieces
        self._run = bytearray()
        self._strip_left = pieces.strip_at_start

    def join(self, token: str) -> str:
        spelled = self._pieces.spell(token)
        if isinstance(spelled, int):
            self._run.append(spelled)
            return ""
        return self._strip(self.end() + spelled)

    def end(self) -> str:
        try:
            text = self._run.decode()
        except UnicodeDecodeError:
            text = _REPLACEMENT * len(self._run)
        self._run.clear()
        return self._strip(text)

    def _strip(self, text: str) -> str:
        while self._strip_left and text:
            if text[0] != self._pieces.strip_character:
                self._strip_left = 0
                break
            text = text[1:]
            self._strip_left -= 1
        return text
