"""What a prescribed form lets come next, for one sequence. Knows committed ids; proposals are tried on copies."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import numpy.typing as npt
from llguidance import LLMatcher

OUTGREW = "a form that stays within the limits of what is worked out for one token"


class Constraint:
    """Keeps one answer in its form.

    The matcher never sees a rejected id: proposals are tried on a copy, which costs microseconds, so there is no state
    to roll back. Where the matcher gives up (its limits bound the time and memory of a hostile grammar), nothing may
    come any more, and the sequence fails alone.

    Args:
        matcher: fresh, without errors, over V ids.
        vocab_size: V.
        eos_token_ids: ids that end an answer; the matcher lets them come only where the answer is complete.
    """

    def __init__(self, matcher: LLMatcher, vocab_size: int, eos_token_ids: Collection[int]) -> None:
        self._matcher = matcher
        self._words = -(-vocab_size // 32)
        self._eos_token_ids = frozenset(eos_token_ids)
        self.failure: str | None = None
        """What a form would have to be, once nothing may come any more."""

    def can_begin(self) -> bool:
        """Whether the matcher gets over the first token: most forms that are too much for it show it there."""
        matcher = self._matcher.deep_copy()
        mask = np.frombuffer(matcher.compute_bitmask(), np.uint8)
        admitted = np.flatnonzero(np.unpackbits(mask, bitorder="little"))
        first = next((token for token in admitted.tolist() if token not in self._eos_token_ids), None)
        return not matcher.is_error() and (first is None or (matcher.consume_token(first) and not matcher.is_error()))

    def take(self, token_ids: Sequence[int]) -> bool:
        """Take in committed ids. Returns False if the form does not let them come; then nothing may come after them."""
        if not self._matcher.consume_tokens(list(token_ids)):
            self.failure = OUTGREW
        return self.failure is None

    def legal(self, token_ids: Sequence[int]) -> int:
        """How many of the proposed ids the form lets come. An end counts as illegal: after it nothing would follow."""
        ends = [place for place, token in enumerate(token_ids) if token in self._eos_token_ids]
        return self._matcher.validate_tokens(list(token_ids[: ends[0]] if ends else token_ids))

    def masks(self, token_ids: Sequence[int]) -> npt.NDArray[np.uint32]:
        """[len(token_ids) + 1, ceil(V / 32)] what may come next and after each of `token_ids`.

        Bit v % 32 of word v // 32 is 1 where id v may come. After an illegal id nothing may, nor where the matcher has
        given up.
        """
        matcher = self._matcher.deep_copy()
        rows = [self._mask(matcher)]
        for token in token_ids[: self.legal(token_ids)]:
            matcher.consume_token(token)
            rows.append(self._mask(matcher))
        nothing = np.zeros_like(rows[0])
        return np.stack([*rows, *[nothing] * (len(token_ids) + 1 - len(rows))])

    def _mask(self, matcher: LLMatcher) -> npt.NDArray[np.uint32]:
        mask = np.frombuffer(matcher.compute_bitmask(), np.uint32)[: self._words]  # one word more where 32 divides V
        if matcher.is_error():
            self.failure = OUTGREW
            return np.zeros_like(mask)
        return mask
