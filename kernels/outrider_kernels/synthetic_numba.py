"""Pretended acceptance on CPUs, row by row."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import prange

from outrider_kernels.compiling import compiled
from outrider_kernels.contracts import SamplingRows, VerifyRows
from outrider_kernels.draws_numba import unit
from outrider_kernels.logits_rows import LogitsRows
from outrider_kernels.sampled_row_numba import coin_bits, emit, law_after, sampled_row


@compiled(parallel=True)
def verify_synthetic_rows(
    logits: npt.NDArray[np.float32],
    rows: VerifyRows,
    sampling: SamplingRows,
    changes: LogitsRows,
    rates: npt.NDArray[np.float64],
    accepted_counts: npt.NDArray[np.int32],
    emitted: npt.NDArray[np.int32],
) -> None:
    """Fill `accepted_counts` [B] and, as far as used, `emitted` [N]. Arguments as in the contract, all in range."""
    for index in prange(accepted_counts.shape[0]):
        start = int(rows.logit_starts[index])
        row = sampled_row(logits, rows, sampling, changes, index)
        most = min(row.proposed.shape[0], rates.shape[0])
        accepted = 0
        while accepted < most and unit(coin_bits(row, accepted)) < rates[accepted]:
            accepted += 1
        emit(row, accepted, law_after(row, accepted), emitted[start:])
        accepted_counts[index] = accepted
