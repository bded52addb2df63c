"""Finds logits out of which no token can be chosen, before they reach a kernel."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from numba import prange

from outrider_kernels.compiling import compiled

_MAGNITUDE = np.int32(0x7FFFFFFF)
_INFINITY = np.int32(0x7F800000)
_MINUS_INFINITY = np.int32(-0x800000)


class BadLogits(ValueError):
    """Logits out of which no token can be chosen."""

    def __init__(self, row: int) -> None:
        super().__init__(f"expected logits without NaN and +inf, and one finite logit at least, in row {row}")


def refuse_bad_rows(logits: torch.Tensor, logit_starts: npt.NDArray[np.int32]) -> None:
    """Refuse logits of which some row is bad.

    Raises:
        BadLogits: names the first bad row of `find_bad_rows`.
    """
    bad = find_bad_rows(logits, logit_starts)
    if len(bad):
        raise BadLogits(int(bad[0]))


def find_bad_rows(logits: torch.Tensor, logit_starts: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Rows of which some logit row holds NaN or +inf, or nothing but -inf.

    Args:
        logits: [N, V] of a float dtype; on a GPU they stay there.
        logit_starts: [B + 1] as in `VerifyRows`.

    Returns:
        [bad rows] int32, ascending indices in [0, B).
    """
    if logits.is_cuda:
        from outrider_kernels.triton_twins.bad_rows import find_bad_rows_on_gpu

        return find_bad_rows_on_gpu(logits, logit_starts)
    if logits.numel() == 0:
        return np.zeros(0, np.int32)
    bad = _bad_logit_rows(logit_array(logits).view(np.int32))
    return np.flatnonzero(np.logical_or.reduceat(bad, logit_starts[:-1])).astype(np.int32)


def logit_array(logits: torch.Tensor) -> npt.NDArray[np.float32]:
    """Logits as contiguous float32 in host memory; shares theirs where they are so already."""
    array: npt.NDArray[np.float32] = logits.detach().to("cpu", torch.float32).contiguous().numpy()
    return array


@compiled(parallel=True)
def _bad_logit_rows(bits: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
    """[N] from the bits of [N, V]: integer comparisons vectorise, tests for NaN do not."""
    bad = np.zeros(bits.shape[0], np.bool_)
    for row in prange(bits.shape[0]):
        finite = np.int32(0)
        wrong = np.int32(0)
        for v in range(bits.shape[1]):
            magnitude = bits[row, v] & _MAGNITUDE
            finite += np.int32(magnitude < _INFINITY)
            wrong += np.int32((magnitude >= _INFINITY) & (bits[row, v] != _MINUS_INFINITY))
        bad[row] = wrong > 0 or finite == 0
    return bad
