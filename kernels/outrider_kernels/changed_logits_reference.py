"""The rule of `outrider_kernels.logits_rows` in plain Python over one row of logits: the specification."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch

from outrider_kernels.logits_rows import LogitsRows

_LARGEST = torch.finfo(torch.float32).max


def changed_logits_reference(
    logits_row: torch.Tensor, changes: LogitsRows, row: int, run: Sequence[int]
) -> torch.Tensor:
    """Logits [V] float32 of one position.

    Args:
        logits_row: [V] of a float dtype, read as float32.
        changes: of B rows.
        row: which of them.
        run: ids that the row has accepted before this position in this run.
    """
    logits = logits_row.detach().to("cpu", torch.float32).clone()
    if not changes.changed[row]:
        return logits
    allowed = _ids(changes.allowed_starts, changes.allowed_ids, row)
    if allowed:
        banned = torch.ones(len(logits), dtype=torch.bool)
        banned[allowed] = False
        logits[banned] = -torch.inf
    first, end = changes.mask_starts[row], changes.mask_starts[row + 1]
    if first < end:
        bits = np.unpackbits(changes.masks[first + len(run)].view(np.uint8), bitorder="little")[: len(logits)]
        logits[torch.from_numpy(bits == 0)] = -torch.inf
    logits[_ends_of_bad_words(changes, row, run)] = -torch.inf
    if len(run) < changes.ending_positions[row]:
        logits[_ids(changes.ending_starts, changes.ending_ids, row)] = -torch.inf
    start, end = changes.bias_starts[row], changes.bias_starts[row + 1]
    for token, bias in zip(changes.bias_ids[start:end].tolist(), changes.bias_values[start:end].tolist(), strict=True):
        _set(logits, token, logits[token].item() + bias)
    for token, count in _seen(changes, row, run).items():
        _set(logits, token, _penalised(logits[token].item(), count, changes, row))
    return logits


def _ids(starts: npt.NDArray[np.int32], ids: npt.NDArray[np.int32], row: int) -> list[int]:
    return ids[starts[row] : starts[row + 1]].tolist()  # type: ignore[no-any-return]


def _ends_of_bad_words(changes: LogitsRows, row: int, run: Sequence[int]) -> list[int]:
    """Ids that would complete a bad word."""
    output = [*_ids(changes.recent_starts, changes.recent_ids, row), *run]
    ends = []
    for word in range(changes.word_rows[row], changes.word_rows[row + 1]):
        *before, last = _ids(changes.word_starts, changes.word_ids, word)
        if len(before) <= len(output) and output[len(output) - len(before) :] == before:
            ends.append(last)
    return ends


def _seen(changes: LogitsRows, row: int, run: Sequence[int]) -> Counter[int]:
    """Ids seen, those of the prompt alone with a count of 0."""
    counts = _ids(changes.seen_starts, changes.seen_counts, row)
    seen = Counter(dict(zip(_ids(changes.seen_starts, changes.seen_ids, row), counts, strict=True)))
    seen.update(run)
    return seen


def _penalised(logit: float, count: int, changes: LogitsRows, row: int) -> float:
    repetition = float(changes.repetition[row])
    logit = logit / repetition if logit > 0 else logit * repetition
    presence = float(changes.presence[row]) if count > 0 else 0.0
    return logit - float(changes.frequency[row]) * count - presence


def _set(logits: torch.Tensor, token: int, value: float) -> None:
    if logits[token] != -torch.inf:
        logits[token] = min(max(value, -_LARGEST), _LARGEST)
