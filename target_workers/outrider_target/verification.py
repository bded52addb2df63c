"""Verification of a step: the target's own token at every position, compared with the proposals, row by row.

A row whose logits are not numbers fails alone; the rows beside it are verified as if it were not there.
"""

from __future__ import annotations

from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from outrider_kernels.verify import find_bad_rows, verify
from outrider_target.batch import Step, sampling_rows, verify_rows
from outrider_target.emission import Emission


@dataclass(frozen=True, slots=True)
class Verified:
    """Emissions of the sampling rows of a step, and the indices of rows that failed."""

    emissions: tuple[Emission, ...] = ()
    failed_rows: tuple[int, ...] = ()


def verify_step(step: Step, logits: torch.Tensor) -> Verified:
    """Verify all sampling rows of a step.

    Args:
        step: rows and their proposals.
        logits: [N, V] float32, N being the logit rows of `ragged_batch(step)`.
    """
    indices = step.sampling_rows
    if not indices:
        return Verified()
    rows = verify_rows(step, indices)
    bad = set(find_bad_rows(logits, rows.logit_starts).tolist())
    if bad:
        good = [row for row in range(len(indices)) if row not in bad]
        logits = logits[_logit_rows(rows.logit_starts, good)]
        failed = tuple(indices[row] for row in sorted(bad))
        return Verified(_emissions(step, logits, [indices[row] for row in good]), failed)
    return Verified(_emissions(step, logits, indices))


def _logit_rows(starts: npt.NDArray[np.int32], rows: SequenceOf[int]) -> torch.Tensor:
    return torch.tensor([at for row in rows for at in range(starts[row], starts[row + 1])], dtype=torch.int64)


def _emissions(step: Step, logits: torch.Tensor, indices: SequenceOf[int]) -> tuple[Emission, ...]:
    if not indices:
        return ()
    rows = verify_rows(step, indices)
    result = verify(logits, rows, sampling_rows(step, indices))
    emissions = []
    for row, index in enumerate(indices):
        start, accepted = int(rows.logit_starts[row]), int(result.accepted_counts[row])
        emitted = result.emitted[start : start + accepted + 1]
        emissions.append(Emission(index, accepted, tuple(emitted.tolist())))
    return tuple(emissions)
