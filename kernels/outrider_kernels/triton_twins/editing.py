"""Changed values of listed ids, computed on the device from the rules of `outrider_kernels.logits_rows`."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from outrider_kernels.contracts import VerifyRows
from outrider_kernels.logits_rows import LogitsRows
from outrider_kernels.triton_twins.devices import to_device
from outrider_kernels.triton_twins.edit_lists import EditLists, edit_lists
from outrider_kernels.triton_twins.registry import LAUNCH_OPTIONS
from outrider_kernels.triton_twins.tables import EditRules, Edits, LogitTable

_BLOCK = 256


def edited_logits(
    logits: torch.Tensor,
    settings: npt.NDArray[np.int64],
    rows: VerifyRows,
    changes: LogitsRows,
    starts: torch.Tensor,
    proposed: torch.Tensor,
) -> Edits:
    """Edits of N logit rows; `starts` and `proposed` are those of `rows` on the device."""
    from outrider_kernels.triton_twins.edit_triton import edit

    lists = edit_lists(changes, rows, logits.shape[1])
    width = lists.ids.shape[1]
    values = torch.empty(len(logits), width, dtype=torch.float32, device=logits.device)
    edits = _edits(lists, values)
    if logits.stride(1) != 1:
        logits = logits.contiguous()
    edit[(len(logits), -(-width // _BLOCK))](
        LogitTable(logits, logits.stride(0), logits.shape[1]),
        edits,
        to_device(settings, logits.device),
        _rules(lists, changes, logits.device),
        starts,
        proposed,
        BLOCK=_BLOCK,
        **LAUNCH_OPTIONS,
    )
    return edits


def _edits(lists: EditLists, values: torch.Tensor) -> Edits:
    device = values.device
    return Edits(
        ids=to_device(lists.ids, device),
        changed=values,
        counts=to_device(lists.counts, device),
        marks=to_device(lists.marks, device),
        exclusive=to_device(lists.exclusive, device),
        masks=to_device(lists.masks, device),
        mask_rows=to_device(lists.mask_rows, device),
        width=lists.ids.shape[1],
        words=lists.marks.shape[1],
    )


def _rules(lists: EditLists, changes: LogitsRows, device: torch.device) -> EditRules:
    return EditRules(
        biases=to_device(lists.biases, device),
        counts=to_device(lists.seen_counts, device),
        endings=to_device(lists.endings, device),
        penalties=to_device(lists.penalties, device),
        ending_positions=to_device(changes.ending_positions, device),
        word_rows=to_device(changes.word_rows, device),
        word_starts=to_device(changes.word_starts, device),
        word_ids=to_device(changes.word_ids, device),
        recent_starts=to_device(changes.recent_starts, device),
        recent_ids=to_device(changes.recent_ids, device),
    )
