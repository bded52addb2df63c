"""What one request changes about its logits: penalties, bias and masks, kept in step with its committed output."""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Collection, Iterable, Sequence

import numpy as np
import numpy.typing as npt

from outrider_kernels.logits_rows import RowChange
from outrider_runtime.errors import InvalidRequest
from outrider_wire.sampling import SamplingParams


class LogitsChange:
    """The changes of one sequence. Rejected ids never reach it: only commitments do.

    Args:
        sampling: of the request.
        prompt: its ids.
        eos_token_ids: the model's end-of-sequence ids; like the request's stop ids they may not come before
            `min_tokens`, also where `ignore_eos` lets the sequence go on past them (as in vLLM).
        vocab_size: V.

    Raises:
        InvalidRequest: the masks together could leave no id to choose.
    """

    def __init__(
        self, sampling: SamplingParams, prompt: Sequence[int], eos_token_ids: Collection[int], vocab_size: int
    ) -> None:
        self._sampling = sampling
        self._ending_ids = _ints(sorted({*eos_token_ids, *sampling.stop_token_ids}))
        self._allowed_ids = _ints(sampling.allowed_token_ids)
        self._bias_ids = _ints(sampling.logit_bias)
        self._bias_values = np.fromiter(sampling.logit_bias.values(), np.float64)
        self._words = tuple(_ints(run) for run in sampling.bad_word_ids)
        self._check_rest(vocab_size)
        self._recent: deque[int] = deque(maxlen=max((len(word) - 1 for word in self._words), default=0))
        self._output_length = 0
        self._penalises = (sampling.repetition_penalty, sampling.presence_penalty, sampling.frequency_penalty) != (
            1,
            0,
            0,
        )
        self._seen = _SeenIds(prompt if sampling.repetition_penalty != 1 else ())
        self._has_lists = bool(sampling.logit_bias or sampling.allowed_token_ids or sampling.bad_word_ids)

    def add(self, token_ids: Sequence[int]) -> None:
        """Take in committed output ids."""
        self._output_length += len(token_ids)
        self._recent.extend(token_ids)
        if self._penalises:
            self._seen.add(token_ids)

    def row(self) -> RowChange | None:
        """The changes at the next position and after it; None when nothing is changed any more."""
        ending_positions = max(0, self._sampling.min_tokens - self._output_length)
        if not (self._penalises or self._has_lists or ending_positions):
            return None
        return RowChange(
            repetition=self._sampling.repetition_penalty,
            presence=self._sampling.presence_penalty,
            frequency=self._sampling.frequency_penalty,
            seen_ids=self._seen.ids,
            seen_counts=self._seen.counts,
            bias_ids=self._bias_ids,
            bias_values=self._bias_values,
            allowed_ids=self._allowed_ids,
            ending_positions=ending_positions,
            ending_ids=self._ending_ids,
            words=self._words,
            recent_ids=_ints(self._recent),
        )

    def _check_rest(self, vocab_size: int) -> None:
        """At every position an id must be left, whatever came before it."""
        sampling = self._sampling
        banned = {run[-1] for run in sampling.bad_word_ids}
        if sampling.min_tokens:
            banned.update(self._ending_ids.tolist())
        allowed = set(sampling.allowed_token_ids) or range(vocab_size)
        if banned.issuperset(allowed):
            rule = "an id besides those that end a bad word or, before min_tokens, the sequence"
            raise InvalidRequest("allowed_token_ids", sampling.allowed_token_ids, rule)


class _SeenIds:
    """Distinct ids and how often the output holds them. Grows by what is added, however long the sequence is."""

    def __init__(self, prompt: Sequence[int]) -> None:
        distinct = dict.fromkeys(prompt)
        self._places = {token: place for place, token in enumerate(distinct)}
        self._ids = array("i", distinct)
        self._counts = array("i", bytes(self._ids.itemsize * len(self._ids)))

    def add(self, token_ids: Sequence[int]) -> None:
        for token in token_ids:
            place = self._places.setdefault(token, len(self._ids))
            if place == len(self._ids):
                self._ids.append(token)
                self._counts.append(0)
            self._counts[place] += 1

    @property
    def ids(self) -> npt.NDArray[np.int32]:
        return np.array(self._ids, np.int32)

    @property
    def counts(self) -> npt.NDArray[np.int32]:
        return np.array(self._counts, np.int32)


def _ints(values: Iterable[int]) -> npt.NDArray[np.int32]:
    return np.fromiter(values, np.int32)
