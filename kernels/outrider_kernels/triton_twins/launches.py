"""Starts the kernels of a verification one after the other, with the memory that they share."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from outrider_kernels.triton_twins.devices import to_device
from outrider_kernels.triton_twins.registry import LAUNCH_OPTIONS
from outrider_kernels.triton_twins.tables import TOTALS, Candidates, Edits, LogitTable, Parts
from outrider_kernels.triton_twins.tiling import Tiling


class Launch(NamedTuple):
    """What the kernels of one verification share."""

    table: LogitTable
    edits: Edits
    settings: torch.Tensor
    """[N, 8] int64."""
    parts: Parts
    tiling: Tiling
    span: int
    edited: bool
    num_blocks: int
    """Of the longest logit row, in ids of `Tiling.block`."""


class Plan(NamedTuple):
    """What `plan` has found."""

    tokens: torch.Tensor
    """[N] int32, of rows without filters."""
    candidates: Candidates


def launch_of(logits: torch.Tensor, settings: npt.NDArray[np.int64], edits: Edits | None, tiling: Tiling) -> Launch:
    """Memory for a verification of logits [N, V]."""
    if logits.stride(1) != 1:
        logits = logits.contiguous()
    table = LogitTable(logits, logits.stride(0), logits.shape[1])
    on_device = to_device(settings, logits.device)
    span = tiling.span_of(logits.shape[1])
    num_blocks = blocks_of(logits.shape[1], tiling.block) + (blocks_of(edits.width, tiling.block) if edits else 0)
    parts = _parts(logits, tiling.parts_of(len(logits), num_blocks), num_blocks * (tiling.block // span))
    nothing = on_device
    no_edits = Edits(nothing, nothing, nothing, nothing, nothing, nothing, nothing, 0, 0)
    return Launch(table, edits or no_edits, on_device, parts, tiling, span, edits is not None, num_blocks)


def scan_rows(launch: Launch) -> None:
    """Fill `launch.parts`."""
    from outrider_kernels.triton_twins.scan_triton import scan

    scan[(len(launch.settings), launch.parts.num_parts)](
        launch.table,
        launch.edits,
        launch.settings,
        launch.parts,
        blocks_of(launch.num_blocks, launch.parts.num_parts),
        BLOCK=launch.tiling.block,
        SPAN=launch.span,
        EDITED=launch.edited,
        **LAUNCH_OPTIONS,
    )


def plan_rows(launch: Launch) -> Plan:
    """Tokens of rows without filters, and where to look for those of the others."""
    from outrider_kernels.triton_twins.plan_triton import plan

    num_logits, device = len(launch.settings), launch.settings.device
    plan_ = Plan(torch.empty(num_logits, dtype=torch.int32, device=device), _candidates(launch))
    plan[(num_logits,)](
        launch.table,
        launch.edits,
        launch.settings,
        launch.parts,
        plan_.candidates,
        plan_.tokens,
        PARTS=power_of_two(launch.parts.num_parts),
        SPANS=power_of_two(launch.parts.num_spans),
        BLOCK=launch.tiling.block,
        SPAN=launch.span,
        EDITED=launch.edited,
        **LAUNCH_OPTIONS,
    )
    return plan_


def choose_filtered(launch: Launch, plan: Plan) -> None:
    """Fill `plan.tokens` of rows with filters."""
    add_up_masses(launch, plan)
    gather_candidates(launch, plan)
    _finish(launch, plan)
    _search(launch, plan)


def add_up_masses(launch: Launch, plan: Plan) -> None:
    """Fill the totals of `plan.candidates`, for rows that top-p alone filters."""
    from outrider_kernels.triton_twins.gather_triton import add_up

    block, num_parts = launch.tiling.sum_block, launch.parts.num_parts
    num_blocks = blocks_of(launch.table.size, block) + (blocks_of(launch.edits.width, block) if launch.edited else 0)
    add_up[(len(launch.settings), num_parts)](
        launch.table,
        launch.edits,
        launch.settings,
        plan.candidates,
        blocks_of(num_blocks, num_parts),
        BLOCK=block,
        EDITED=launch.edited,
        num_warps=8,
        **LAUNCH_OPTIONS,
    )


def gather_candidates(launch: Launch, plan: Plan) -> None:
    """Fill ranks and counts of `plan.candidates`, for rows with filters."""
    from outrider_kernels.triton_twins.gather_triton import gather

    gather[(len(launch.settings), launch.parts.num_parts)](
        launch.table,
        launch.edits,
        launch.settings,
        launch.parts,
        plan.candidates,
        blocks_of(launch.num_blocks, launch.parts.num_parts),
        BLOCK=launch.tiling.block,
        SPAN=launch.span,
        PARTS=power_of_two(launch.parts.num_parts),
        ROOM=launch.tiling.room,
        EDITED=launch.edited,
        **LAUNCH_OPTIONS,
    )


def _finish(launch: Launch, plan: Plan) -> None:
    from outrider_kernels.triton_twins.finish_triton import finish

    finish[(len(launch.settings),)](
        launch.settings,
        plan.candidates,
        launch.parts.num_parts,
        plan.tokens,
        PARTS=power_of_two(launch.parts.num_parts),
        ROOM=launch.tiling.room,
        num_warps=8,
        **LAUNCH_OPTIONS,
    )


def _search(launch: Launch, plan: Plan) -> None:
    from outrider_kernels.triton_twins.search_triton import search

    search[(len(launch.settings),)](
        launch.table,
        launch.edits,
        launch.settings,
        plan.candidates,
        launch.parts.num_parts,
        plan.tokens,
        BLOCK=launch.tiling.block,
        PARTS=power_of_two(launch.parts.num_parts),
        ROOM=launch.tiling.room,
        EDITED=launch.edited,
        num_warps=8,
        **LAUNCH_OPTIONS,
    )


def _parts(logits: torch.Tensor, num_parts: int, num_spans: int) -> Parts:
    def empty(columns: int, dtype: torch.dtype) -> torch.Tensor:
        return torch.empty(len(logits), columns, dtype=dtype, device=logits.device)

    return Parts(
        tops=empty(num_parts, torch.float32),
        top_ids=empty(num_parts, torch.int32),
        bests=empty(num_parts, torch.float64),
        best_ids=empty(num_parts, torch.int32),
        flags=empty(num_parts, torch.int32),
        maxima=empty(num_spans, torch.float32),
        num_parts=num_parts,
        num_spans=num_spans,
    )


def _candidates(launch: Launch) -> Candidates:
    num_logits, device = len(launch.settings), launch.settings.device
    return Candidates(
        tops=torch.empty(num_logits, dtype=torch.float32, device=device),
        floors=torch.empty(num_logits, dtype=torch.int32, device=device),
        totals=torch.empty(num_logits, launch.parts.num_parts, TOTALS, dtype=torch.int64, device=device),
        ranks=torch.empty(num_logits, launch.tiling.room, dtype=torch.int64, device=device),
        counts=torch.empty(num_logits, dtype=torch.int32, device=device),
    )


def blocks_of(size: int, block: int) -> int:
    """Blocks that hold `size`."""
    return -(-size // block)


def power_of_two(size: int) -> int:
    """The smallest power of two that is not below `size`."""
    return 1 << max(size - 1, 0).bit_length()
