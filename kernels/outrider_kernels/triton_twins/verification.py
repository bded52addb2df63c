"""Verification of logits that live on a GPU: the contract of `outrider_kernels.verify`, with kernels in Triton.

All positions of all rows are chosen for at once, each as if every proposal before it were accepted; the comparison then
keeps what those before it allow. Memory is passed over once where nothing is filtered (`scan_triton`), with filters a
second time over blocks that can hold what is kept (`gather_triton`), and for top-p without top-k once in between for
the sum of all mass. Nothing but the result is copied to the host.
"""

from __future__ import annotations

import numpy as np
import torch

from outrider_kernels.arguments import check_arguments, check_changes
from outrider_kernels.contracts import SamplingRows, VerifyResult, VerifyRows
from outrider_kernels.logits_rows import LogitsRows, stack_changes
from outrider_kernels.triton_twins.bad_rows import refuse_bad_rows
from outrider_kernels.triton_twins.devices import check_device, on_device, processors_of, to_device
from outrider_kernels.triton_twins.editing import edited_logits
from outrider_kernels.triton_twins.launches import Launch, choose_filtered, launch_of, plan_rows, scan_rows
from outrider_kernels.triton_twins.registry import LAUNCH_OPTIONS
from outrider_kernels.triton_twins.settings import row_settings
from outrider_kernels.triton_twins.tables import Kind, Setting
from outrider_kernels.triton_twins.tiling import Tiling


def verify_on_gpu(
    logits: torch.Tensor,
    rows: VerifyRows,
    sampling: SamplingRows,
    changes: LogitsRows | None = None,
    tiling: Tiling | None = None,
) -> VerifyResult:
    """`outrider_kernels.verify.verify`, for logits on a GPU. `tiling` changes no token.

    Raises:
        ValueError: as there; or the logits are not on a GPU.
        RuntimeError: triton is missing.
    """
    changes = stack_changes([None] * len(rows.first_position)) if changes is None else changes
    check_arguments(logits, rows, sampling)
    check_changes(changes, np.diff(rows.logit_starts), logits.shape[1])
    check_device(logits)
    if len(logits) == 0:
        return VerifyResult(np.zeros(0, np.int32), np.zeros(0, np.int32))
    with on_device(logits):
        return _verify(logits, rows, sampling, changes, tiling or Tiling(processors=processors_of(logits)))


def _verify(
    logits: torch.Tensor, rows: VerifyRows, sampling: SamplingRows, changes: LogitsRows, tiling: Tiling
) -> VerifyResult:
    settings = row_settings(rows, sampling, logits.shape[1])
    starts, proposed = to_device(rows.logit_starts, logits.device), to_device(rows.proposed, logits.device)
    edits = edited_logits(logits, settings, rows, changes, starts, proposed) if changes.changed.any() else None
    launch = launch_of(logits, settings, edits, tiling)
    scan_rows(launch)
    plan = plan_rows(launch)
    if (settings[:, Setting.KIND] == Kind.FILTERED).any():
        choose_filtered(launch, plan)
    return _compare(launch, rows, starts, proposed, plan.tokens)


def _compare(
    launch: Launch, rows: VerifyRows, starts: torch.Tensor, proposed: torch.Tensor, tokens: torch.Tensor
) -> VerifyResult:
    """Compare with the proposals, and copy the result to the host in one piece."""
    from outrider_kernels.triton_twins.compare_triton import compare

    count, num_logits = len(rows.first_position), len(tokens)
    result = torch.empty(count + num_logits, dtype=torch.int32, device=tokens.device)
    compare[(count,)](starts, proposed, tokens, result[:count], result[count:], **LAUNCH_OPTIONS)
    flags = launch.parts.flags
    everything = torch.cat([result, flags.flatten()]).cpu().numpy()
    accepted, emitted, found = np.split(everything, [count, count + num_logits])
    refuse_bad_rows(found.reshape(flags.shape), rows.logit_starts)
    return VerifyResult(accepted, emitted)
