"""The ratio rules for logits that live on a GPU: the contract of `outrider_kernels.ratio_verify`, in Triton.

All positions get their laws at once, each as if every proposal before it were accepted; a program per row then stops it
and draws its token. Nothing but the result is copied to the host.
"""

from __future__ import annotations

import numpy as np
import torch

from outrider_kernels.contracts import SamplingRows, VerifyResult, VerifyRows
from outrider_kernels.draft_rows import MAX_LISTED_IDS, DraftRows, check_draft_rows
from outrider_kernels.logits_rows import LogitsRows, stack_changes
from outrider_kernels.triton_twins.devices import on_device, to_device
from outrider_kernels.triton_twins.registry import LAUNCH_OPTIONS
from outrider_kernels.triton_twins.tables import DraftLaws
from outrider_kernels.triton_twins.tiling import Tiling
from outrider_kernels.triton_twins.tosses import begin_toss, check_toss, end_toss


def verify_by_ratio_on_gpu(
    logits: torch.Tensor,
    rows: VerifyRows,
    sampling: SamplingRows,
    draft: DraftRows,
    changes: LogitsRows | None = None,
    tiling: Tiling | None = None,
    *,
    block: bool = False,
) -> VerifyResult:
    """`outrider_kernels.ratio_verify.verify_by_ratio`, for logits on a GPU. `tiling` changes no token.

    Raises:
        ValueError: as there; or the logits are not on a GPU.
        RuntimeError: triton is missing.
    """
    changes = stack_changes([None] * len(rows.first_position)) if changes is None else changes
    check_toss(logits, rows, sampling, changes)
    check_draft_rows(draft, rows.proposed, logits.shape[1])
    if len(logits) == 0:
        return VerifyResult(np.zeros(0, np.int32), np.zeros(0, np.int32))
    from outrider_kernels.triton_twins.ratio_triton import stop_rows

    with on_device(logits):
        toss = begin_toss(logits, rows, sampling, changes, tiling)
        stop_rows[(len(rows.first_position),)](
            toss.found.laws,
            toss.rows,
            _draft_laws(draft, logits.device),
            toss.accepted_counts,
            BLOCK_RULE=block,
            LISTED=MAX_LISTED_IDS,
            num_warps=1,
            **LAUNCH_OPTIONS,
        )
        return end_toss(toss, rows)


def _draft_laws(draft: DraftRows, device: torch.device) -> DraftLaws:
    return DraftLaws(
        to_device(draft.starts.astype(np.int32, copy=False), device),
        to_device(draft.ids.astype(np.int32, copy=False), device),
        to_device(draft.weights.astype(np.int64, copy=False), device),
    )
