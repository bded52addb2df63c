"""Bad rows of logits on a GPU: the contract of `outrider_kernels.bad_rows`, by the flags of `scan_triton`."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from outrider_kernels.bad_rows import BadLogits
from outrider_kernels.triton_twins.devices import check_device, on_device, processors_of
from outrider_kernels.triton_twins.launches import launch_of, scan_rows
from outrider_kernels.triton_twins.tables import BAD_FLAG, FINITE_FLAG, Setting
from outrider_kernels.triton_twins.tiling import Tiling


def find_bad_rows_on_gpu(
    logits: torch.Tensor, logit_starts: npt.NDArray[np.int32], tiling: Tiling | None = None
) -> npt.NDArray[np.int32]:
    """`outrider_kernels.bad_rows.find_bad_rows`, for logits on a GPU."""
    check_device(logits)
    if logits.numel() == 0:
        return np.zeros(0, np.int32)
    with on_device(logits):
        settings = np.zeros((len(logits), len(Setting)), np.int64)
        launch = launch_of(logits, settings, None, tiling or Tiling(processors=processors_of(logits)))
        scan_rows(launch)
        return _bad_rows(launch.parts.flags.cpu().numpy(), logit_starts)


def refuse_bad_rows(flags: npt.NDArray[np.int32], logit_starts: npt.NDArray[np.int32]) -> None:
    """Refuse logits out of which no token can be chosen.

    Args:
        flags: [N, parts] as in `tables.Parts`.
        logit_starts: [B + 1] as in `VerifyRows`.

    Raises:
        BadLogits: names the first bad row.
    """
    bad = _bad_rows(flags, logit_starts)
    if len(bad):
        raise BadLogits(int(bad[0]))


def _bad_rows(flags: npt.NDArray[np.int32], logit_starts: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Rows with a logit row that holds NaN or +inf in some part, or nothing finite in any."""
    joined = np.bitwise_or.reduce(flags, axis=1)
    bad = (joined & BAD_FLAG != 0) | (joined & FINITE_FLAG == 0)
    return np.flatnonzero(np.logical_or.reduceat(bad, logit_starts[:-1])).astype(np.int32)
