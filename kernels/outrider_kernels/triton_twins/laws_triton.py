"""The target's laws of logit rows as dense masses, without sorting: where filters cut each row, then what is above."""

from __future__ import annotations

import triton
import triton.language as tl

from outrider_kernels.triton_twins import tables
from outrider_kernels.triton_twins.finish_triton import cut_candidates, load_candidates, needed_total
from outrider_kernels.triton_twins.gather_triton import exponents_of, is_filtered
from outrider_kernels.triton_twins.mass_triton import masses
from outrider_kernels.triton_twins.order_triton import ranks_of
from outrider_kernels.triton_twins.row_blocks_triton import fetch, num_blocks, real_setting, whole_setting
from outrider_kernels.triton_twins.search_triton import cut_row, lowest_finite_rank

_OWNER = tl.constexpr(int(tables.Setting.OWNER))
_INVERSE = tl.constexpr(int(tables.Setting.INVERSE))
_LOG_MIN_P = tl.constexpr(int(tables.Setting.LOG_MIN_P))
_KIND = tl.constexpr(int(tables.Setting.KIND))
_GREEDY = tl.constexpr(int(tables.Kind.GREEDY))


@triton.jit
def find_cuts(
    table: tables.LogitTable,
    edits: tables.Edits,
    settings: tl.tensor,
    candidates: tables.Candidates,
    num_parts: tl.tensor,
    tokens: tl.tensor,
    cuts: tl.tensor,
    BLOCK: tl.constexpr,
    PARTS: tl.constexpr,
    ROOM: tl.constexpr,
    EDITED: tl.constexpr,
) -> None:
    """Fill `cuts` [N] int64: the lowest rank with a mass. A greedy row's is that of its token. Grid [N]."""
    row = tl.program_id(0).to(tl.int64)
    kept_from = lowest_finite_rank()
    if whole_setting(settings, row, _KIND) == _GREEDY:
        kept_from = ranks_of(tl.load(candidates.tops + row), tl.load(tokens + row))
    if is_filtered(settings, candidates, row):
        if tl.load(candidates.counts + row) <= ROOM:
            ranks, valid = load_candidates(candidates, row, ROOM)
            total = needed_total(settings, candidates, row, num_parts, PARTS)
            kept_from = cut_candidates(settings, row, ranks, valid, tl.load(candidates.tops + row), total)
        else:
            kept_from = cut_row(table, edits, settings, candidates, row, num_parts, BLOCK, PARTS, EDITED)
    tl.store(cuts + row, kept_from)


@triton.jit
def fill_laws(
    table: tables.LogitTable,
    edits: tables.Edits,
    settings: tl.tensor,
    candidates: tables.Candidates,
    cuts: tl.tensor,
    law_masses: tl.tensor,
    part_totals: tl.tensor,
    blocks_a_part: tl.tensor,
    BLOCK: tl.constexpr,
    EDITED: tl.constexpr,
) -> None:
    """Write masses above 0 to `law_masses` [N, V] int64, and their sums to `part_totals` [N, parts]. Grid [N, parts].

    Masses of 0 are not written: an edited id lies in two blocks, and in one of them it only looks as if banned.
    """
    row, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    top = tl.load(candidates.tops + row)
    sums = tl.zeros((BLOCK,), tl.int64)
    if top > -float("inf"):
        owner = whole_setting(settings, row, _OWNER)
        inverse, log_min_p = real_setting(settings, row, _INVERSE), real_setting(settings, row, _LOG_MIN_P)
        kept_from = tl.load(cuts + row)
        first = part * blocks_a_part
        end = tl.minimum(first + blocks_a_part, num_blocks(table, edits, owner, BLOCK, EDITED))
        for block in range(first, end):
            _, logits, ids = fetch(table, edits, row, owner, block, BLOCK, EDITED)
            exponents = exponents_of(logits, top, inverse)
            kept = (exponents >= log_min_p) & (ranks_of(logits, ids) >= kept_from)
            mass = tl.where(kept, masses(exponents), 0)
            tl.store(law_masses + row * table.size + ids, mass, mask=mass > 0)
            sums += mass
    tl.store(part_totals + row * tl.num_programs(1) + part, tl.sum(sums))
