"""A model's tokenizer: text to ids and back, and the facts about ids that serving needs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import tokenizers

from outrider_runtime.errors import InvalidRequest, ModelRefused
from outrider_runtime.text.fingerprint import fingerprint
from outrider_runtime.text.model_files import declared_eos_ids, read_json, special_tokens
from outrider_runtime.text.pieces import Pieces, read_pieces
from outrider_runtime.text.token_reach import token_reach

_LOCKED_CHARACTERS = 2048
"""Longer texts are encoded without Python's lock, which takes a moment more."""


class Tokenizer:
    """Text to token ids and back. Safe to share between threads: it does not change.

    Build it with `Tokenizer.from_folder`.
    """

    def __init__(
        self, backend: tokenizers.Tokenizer, definition: dict[str, Any], eos_token_ids: frozenset[int]
    ) -> None:
        self._backend = backend
        self._eos_token_ids = eos_token_ids
        self._fingerprint = fingerprint(definition)
        self._pieces = read_pieces(definition.get("decoder"))
        self._reach = token_reach(definition)
        self._special = {token["content"] for token in definition.get("added_tokens") or [] if token["special"]}

    @classmethod
    def from_folder(cls, folder: Path | str) -> Tokenizer:
        """The tokenizer of a model folder.

        Raises:
            ModelRefused: tokenizer.json is missing, damaged, or of a kind whose text cannot be streamed.
        """
        folder = Path(folder)
        path = folder / "tokenizer.json"
        if not path.is_file():
            raise ModelRefused(f"{path}: missing; only models with a tokenizer.json are served")
        definition = read_json(path)
        try:
            backend = tokenizers.Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises nothing more specific than Exception
            raise ModelRefused(f"{path}: not a tokenizer: {error}") from error
        # A limit of the training set-up must not silently cut a prompt.
        backend.no_truncation()
        backend.no_padding()
        return cls(backend, definition, _eos_ids(folder, backend))

    @property
    def eos_token_ids(self) -> frozenset[int]:
        """Ids that end a text: those of generation_config.json (or config.json) and the tokenizer's own."""
        return self._eos_token_ids

    @property
    def fingerprint(self) -> str:
        """SHA-256 (hex) of all that decides which ids a text becomes; compared when a draft worker connects."""
        return self._fingerprint

    @property
    def pieces(self) -> Pieces:
        """How tokens spell text, for `IncrementalDecoder`."""
        return self._pieces

    @cached_property
    def vocab_size(self) -> int:
        """One more than the largest id that has a token. The model's output may be wider, padded with unused ids."""
        return max(self._backend.get_vocab(with_added_tokens=True).values()) + 1

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        """Ids of `text`. Special tokens spelled in the text become their ids. Long texts leave Python's lock to others.

        Args:
            text: what to encode.
            add_special_tokens: add what the tokenizer puts around a text, usually a beginning-of-sequence id. Text
                from a chat template already holds it: give False then.

        Raises:
            InvalidRequest: `text` holds half of a surrogate pair and so is no Unicode text.
        """
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise InvalidRequest(
                "text", text[error.start : error.end], "Unicode text without lone surrogates"
            ) from error
        if len(text) <= _LOCKED_CHARACTERS:
            encoding = self._backend.encode(text, add_special_tokens=add_special_tokens)
        else:  # of all the library's ways in, only those for several texts at once release the lock
            encoding = self._backend.encode_batch_fast([text], add_special_tokens=add_special_tokens)[0]
        ids: list[int] = encoding.ids
        return ids

    def least_tokens(self, text: str) -> int:
        """Tokens that `text` has at least, known from its bytes alone; 0 where the tokenizer may lose any of them."""
        return 0 if self._reach is None else self._reach.least_tokens(text)

    def decode(self, token_ids: Sequence[int]) -> str:
        """Text of `token_ids`. Special tokens and ids without a token are left out; broken UTF-8 becomes U+FFFD."""
        text: str = self._backend.decode(list(token_ids), skip_special_tokens=True)
        return text

    def token_bytes(self, token_id: int) -> bytes:
        """What one id spells, on its own: special tokens spell their name, ids without a token nothing."""
        token: str | None = self._backend.id_to_token(token_id)
        if token is None or token in self._special:
            return (token or "").encode()
        spelled = self._pieces.spell(token)
        if isinstance(spelled, int):
            return bytes([spelled])
        return spelled if isinstance(spelled, bytes) else spelled.encode()

    def text_token(self, token_id: int) -> str | None:
        """The token of an id as the vocabulary spells it; None for special tokens and ids without a token."""
        token: str | None = self._backend.id_to_token(token_id)
        return None if token in self._special else token


def _eos_ids(folder: Path, backend: tokenizers.Tokenizer) -> frozenset[int]:
    spelled = special_tokens(folder).get("eos_token")
    own = None if spelled is None else backend.token_to_id(spelled)
    return frozenset(declared_eos_ids(folder) | ({own} if own is not None else set()))
