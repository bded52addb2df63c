"""Second and third pass over filtered logit rows: sums of mass for top-p, then the ids that a filter may keep."""

from __future__ import annotations

import triton
import triton.language as tl

from outrider_kernels.triton_twins import tables
from outrider_kernels.triton_twins.mass_triton import masses
from outrider_kernels.triton_twins.order_triton import order_keys, ranks_of
from outrider_kernels.triton_twins.row_blocks_triton import fetch, num_blocks, real_setting, whole_setting

_OWNER = tl.constexpr(int(tables.Setting.OWNER))
_TOP_K = tl.constexpr(int(tables.Setting.TOP_K))
_TOP_P = tl.constexpr(int(tables.Setting.TOP_P))
_INVERSE = tl.constexpr(int(tables.Setting.INVERSE))
_LOG_MIN_P = tl.constexpr(int(tables.Setting.LOG_MIN_P))
_KIND = tl.constexpr(int(tables.Setting.KIND))
_FILTERED = tl.constexpr(int(tables.Kind.FILTERED))
_TOTALS = tl.constexpr(tables.TOTALS)
_STEP = tl.constexpr(-2.0)
"""Distance of two bounds of `add_up`, in nats."""


@triton.jit
def is_filtered(settings: tl.tensor, candidates: tables.Candidates, row: tl.tensor) -> tl.tensor:
    """Whether a logit row has a token to choose, and filters."""
    if whole_setting(settings, row, _KIND) == _FILTERED:
        filtered = tl.load(candidates.tops + row) > -float("inf")
    else:
        filtered = tl.full((), 0, tl.int1)
    return filtered


@triton.jit
def needs_total(settings: tl.tensor, row: tl.tensor) -> tl.tensor:
    """Whether top-p needs the mass of the whole row: after top-k it needs that of what top-k kept."""
    return (real_setting(settings, row, _TOP_P) < 1.0) & (whole_setting(settings, row, _TOP_K) == 0)


@triton.jit
def exponents_of(logits: tl.tensor, top: tl.tensor, inverse: tl.tensor) -> tl.tensor:
    """(logit - largest logit) / temperature, float64."""
    return (logits.to(tl.float64) - top.to(tl.float64)) * inverse


@triton.jit
def add_up(
    table: tables.LogitTable,
    edits: tables.Edits,
    settings: tl.tensor,
    candidates: tables.Candidates,
    blocks_a_part: tl.tensor,
    BLOCK: tl.constexpr,
    EDITED: tl.constexpr,
) -> None:
    """Fill `totals`: mass of ids whose exponent is at least -2, -4, ... -14, and last of all ids. Grid [N, parts]."""
    row, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    if is_filtered(settings, candidates, row) & needs_total(settings, row):
        owner = whole_setting(settings, row, _OWNER)
        inverse, log_min_p = real_setting(settings, row, _INVERSE), real_setting(settings, row, _LOG_MIN_P)
        top = tl.load(candidates.tops + row)
        bounds = lower_bounds()
        sums = tl.zeros((_TOTALS, BLOCK), tl.int64)
        first = part * blocks_a_part
        end = tl.minimum(first + blocks_a_part, num_blocks(table, edits, owner, BLOCK, EDITED))
        for block in range(first, end):
            _, logits, _ = fetch(table, edits, row, owner, block, BLOCK, EDITED)
            exponents = exponents_of(logits, top, inverse)
            mass = tl.where(exponents >= log_min_p, masses(exponents), 0)
            sums += tl.where(exponents[None, :] >= bounds[:, None], mass[None, :], 0)
        place = (row * tl.num_programs(1) + part) * _TOTALS + tl.arange(0, _TOTALS)
        tl.store(candidates.totals + place, tl.sum(sums, axis=1))


@triton.jit
def lower_bounds() -> tl.tensor:
    """Bounds (float64) of exponents that `add_up` sums above."""
    index = tl.arange(0, _TOTALS)
    return tl.where(index == _TOTALS - 1, -float("inf"), (index + 1).to(tl.float64) * _STEP)


@triton.jit
def row_totals(candidates: tables.Candidates, row: tl.tensor, num_parts: tl.tensor, PARTS: tl.constexpr) -> tl.tensor:
    """Sums [TOTALS] int64 of a logit row."""
    part, column = tl.arange(0, PARTS), tl.arange(0, _TOTALS)
    place = (row * num_parts + part)[:, None] * _TOTALS + column[None, :]
    return tl.sum(tl.load(candidates.totals + place, mask=(part < num_parts)[:, None], other=0), axis=0)


@triton.jit
def whole_total(totals: tl.tensor) -> tl.tensor:
    """The mass of everything, int64, out of `row_totals`."""
    return tl.sum(tl.where(tl.arange(0, _TOTALS) == _TOTALS - 1, totals, 0))


@triton.jit
def gather(
    table: tables.LogitTable,
    edits: tables.Edits,
    settings: tl.tensor,
    parts: tables.Parts,
    candidates: tables.Candidates,
    blocks_a_part: tl.tensor,
    BLOCK: tl.constexpr,
    SPAN: tl.constexpr,
    PARTS: tl.constexpr,
    ROOM: tl.constexpr,
    EDITED: tl.constexpr,
) -> None:
    """Fill `ranks` and `counts` of candidates, passing over blocks without any. Grid [N, parts]."""
    row, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    if is_filtered(settings, candidates, row):
        owner = whole_setting(settings, row, _OWNER)
        inverse = real_setting(settings, row, _INVERSE)
        top, floor = tl.load(candidates.tops + row), tl.load(candidates.floors + row)
        lowest = real_setting(settings, row, _LOG_MIN_P)
        if needs_total(settings, row):
            totals = row_totals(candidates, row, parts.num_parts, PARTS)
            limit = real_setting(settings, row, _TOP_P) * whole_total(totals).to(tl.float64)
            # What lies below a bound above which there is enough mass comes after enough mass: top-p leaves it out.
            enough = totals.to(tl.float64) >= limit
            lowest = tl.maximum(lowest, tl.max(tl.where(enough, lower_bounds(), -float("inf"))))
        first = part * blocks_a_part
        end = tl.minimum(first + blocks_a_part, num_blocks(table, edits, owner, BLOCK, EDITED))
        for block in range(first, end):
            spans = block * (BLOCK // SPAN) + tl.arange(0, BLOCK // SPAN)
            largest = tl.max(tl.load(parts.maxima + row * parts.num_spans + spans))
            if _is_candidate(largest, top, inverse, lowest, floor):
                _, logits, ids = fetch(table, edits, row, owner, block, BLOCK, EDITED)
                chosen = _is_candidate(logits, top, inverse, lowest, floor).to(tl.int32)
                place = tl.atomic_add(candidates.counts + row, tl.sum(chosen)) + tl.cumsum(chosen) - 1
                fits = (chosen != 0) & (place < ROOM)
                tl.store(candidates.ranks + row * ROOM + place, ranks_of(logits, ids), mask=fits)


@triton.jit
def _is_candidate(
    logits: tl.tensor, top: tl.tensor, inverse: tl.tensor, lowest: tl.tensor, floor: tl.tensor
) -> tl.tensor:
    reaches = (exponents_of(logits, top, inverse) >= lowest) & (order_keys(logits) >= floor)
    return reaches & (logits > -float("inf"))
