"""What every form of verification asks of its arguments."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from outrider_kernels.contracts import SamplingRows, VerifyRows
from outrider_kernels.mass import MAX_VOCAB_SIZE

GREEDY_BELOW = 1e-5
"""Smaller temperatures count as 0: scores divided by them would swallow the noise."""
LOGIT_DTYPES = (torch.float32, torch.bfloat16, torch.float16)


def check_arguments(logits: torch.Tensor, rows: VerifyRows, sampling: SamplingRows) -> None:
    """Check shapes, kinds and ranges; values of the logits are left to `bad_rows`.

    Raises:
        ValueError: names the argument, what was expected and what was given.
    """
    if logits.ndim != 2 or logits.dtype not in LOGIT_DTYPES or not 1 <= logits.shape[1] <= MAX_VOCAB_SIZE:
        raise ValueError(
            f"expected logits [N, V] of float32, bfloat16 or float16, V in [1, {MAX_VOCAB_SIZE}], "
            f"given {list(logits.shape)} {logits.dtype}"
        )
    _check_rows(logits.shape[0], logits.shape[1], rows)
    count = len(rows.first_position)
    for name, values in sampling._asdict().items():
        if values.shape != (count,):
            raise ValueError(f"expected {name} of {count} rows, given shape {values.shape}")
    _check_range("temperature", sampling.temperature, sampling.temperature >= 0, "finite and >= 0")
    _check_range("top_k", sampling.top_k, sampling.top_k >= 0, ">= 0")
    _check_range("top_p", sampling.top_p, (sampling.top_p > 0) & (sampling.top_p <= 1), "in (0, 1]")
    _check_range("min_p", sampling.min_p, (sampling.min_p >= 0) & (sampling.min_p <= 1), "in [0, 1]")


def _check_rows(num_logits: int, vocab_size: int, rows: VerifyRows) -> None:
    starts, count = rows.logit_starts, len(rows.first_position)
    if starts.shape != (count + 1,) or starts[0] != 0 or starts[-1] != num_logits or np.any(np.diff(starts) < 1):
        raise ValueError(
            f"expected logit_starts of {count} rows, rising from 0 to {num_logits} by at least 1, "
            f"given {starts.tolist()}"
        )
    if rows.proposed.shape != (num_logits - count,):
        raise ValueError(f"expected {num_logits - count} proposed ids, given shape {rows.proposed.shape}")
    inside = (rows.proposed >= 0) & (rows.proposed < vocab_size)
    _check_range("proposed", rows.proposed, inside, f"in [0, {vocab_size})")
    _check_range("first_position", rows.first_position, rows.first_position >= 0, ">= 0")


def _check_range(name: str, values: npt.NDArray[np.generic], valid: npt.NDArray[np.bool_], expected: str) -> None:
    finite = np.isfinite(values)
    if not np.all(valid & finite):
        raise ValueError(f"expected {name} {expected}, given {values[~(valid & finite)][0]}")
