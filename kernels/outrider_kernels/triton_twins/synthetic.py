"""Pretended acceptance for logits on a GPU: the contract of `outrider_kernels.synthetic_verify`, in Triton."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from outrider_kernels.arguments import check_rates
from outrider_kernels.contracts import SamplingRows, VerifyResult, VerifyRows
from outrider_kernels.logits_rows import LogitsRows, stack_changes
from outrider_kernels.triton_twins.devices import on_device, to_device
from outrider_kernels.triton_twins.registry import LAUNCH_OPTIONS
from outrider_kernels.triton_twins.tiling import Tiling
from outrider_kernels.triton_twins.tosses import begin_toss, check_toss, end_toss


def verify_synthetic_on_gpu(
    logits: torch.Tensor,
    rows: VerifyRows,
    sampling: SamplingRows,
    rates: npt.NDArray[np.float64],
    changes: LogitsRows | None = None,
    tiling: Tiling | None = None,
) -> VerifyResult:
    """`outrider_kernels.synthetic_verify.verify_synthetic`, for logits on a GPU. `tiling` changes no token.

    Raises:
        ValueError: as there; or the logits are not on a GPU.
        RuntimeError: triton is missing.
    """
    changes = stack_changes([None] * len(rows.first_position)) if changes is None else changes
    check_toss(logits, rows, sampling, changes)
    check_rates(rates)
    if len(logits) == 0:
        return VerifyResult(np.zeros(0, np.int32), np.zeros(0, np.int32))
    from outrider_kernels.triton_twins.synthetic_triton import stop_by_rates

    with on_device(logits):
        toss = begin_toss(logits, rows, sampling, changes, tiling)
        stop_by_rates[(len(rows.first_position),)](
            toss.rows,
            to_device(rates.astype(np.float64, copy=False), logits.device),
            toss.accepted_counts,
            len(rates),
            num_warps=1,
            **LAUNCH_OPTIONS,
        )
        return end_toss(toss, rows)
