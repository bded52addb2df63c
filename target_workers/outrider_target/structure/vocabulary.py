"""A tokenizer's vocabulary as the grammar library takes it: what every id spells, in our own decoder's words."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from llguidance import LLTokenizer, TokenizerWrapper

from outrider_runtime.text.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class Spelling:
    """What ids spell.

    Attributes:
        tokens: [V] bytes of each id.
        special_token_ids: ids that spell no text; no form ever lets them come, except for ends.
        eos_token_ids: ids that end an answer; one at least.
        encode: text to ids; the library asks for it, masks do not depend on it.
    """

    tokens: Sequence[bytes]
    special_token_ids: Sequence[int]
    eos_token_ids: Collection[int]
    encode: Callable[[str], list[int]]


def spelling_of(tokenizer: Tokenizer, vocab_size: int) -> Spelling | None:
    """Spelling of a model's `vocab_size` ids; None where the model has no end-of-sequence id.

    Ids beyond the tokenizer's, with which models pad their output, count as special.
    """
    if not tokenizer.eos_token_ids:
        return None
    return Spelling(
        tokens=[tokenizer.token_bytes(token) for token in range(vocab_size)],
        special_token_ids=[token for token in range(vocab_size) if tokenizer.text_token(token) is None],
        eos_token_ids=tokenizer.eos_token_ids,
        encode=lambda text: tokenizer.encode(text, add_special_tokens=False),
    )


def build_vocabulary(spelling: Spelling) -> LLTokenizer:
    """The library's trie of the vocabulary; takes a third of a second for 49152 ids."""
    ends = sorted(spelling.eos_token_ids)
    return LLTokenizer(TokenizerWrapper(_Wrapped(spelling, ends[0])), eos_token=ends)


class _Wrapped:
    """Has the attributes that the library looks for."""

    bos_token_id = None

    def __init__(self, spelling: Spelling, eos_token_id: int) -> None:
        self.tokens = spelling.tokens
        self.special_token_ids = spelling.special_token_ids
        self.eos_token_id = eos_token_id
        self._encode = spelling.encode

    def __call__(self, text: bytes | str) -> list[int]:
        return self._encode(text if isinstance(text, str) else text.decode(errors="replace"))
