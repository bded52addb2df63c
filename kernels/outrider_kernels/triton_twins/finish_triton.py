"""The token of a filtered logit row: cut by top-k, cut by top-p, then the noisy arg-max of what is left."""

from __future__ import annotations

import triton
import triton.language as tl

from outrider_kernels.triton_twins import tables
from outrider_kernels.triton_twins.gather_triton import (
    exponents_of,
    is_filtered,
    needs_total,
    row_totals,
    whole_total,
)
from outrider_kernels.triton_twins.mass_triton import masses
from outrider_kernels.triton_twins.noise_triton import hash_ids, row_key
from outrider_kernels.triton_twins.order_triton import LOWEST_RANK, cut, ids_of, logits_of
from outrider_kernels.triton_twins.row_blocks_triton import real_setting, whole_setting
from outrider_kernels.triton_twins.scores_triton import best_of

_POSITION = tl.constexpr(int(tables.Setting.POSITION))
_SEED = tl.constexpr(int(tables.Setting.SEED))
_TOP_K = tl.constexpr(int(tables.Setting.TOP_K))
_TOP_P = tl.constexpr(int(tables.Setting.TOP_P))
_INVERSE = tl.constexpr(int(tables.Setting.INVERSE))


@triton.jit
def finish(
    settings: tl.tensor,
    candidates: tables.Candidates,
    num_parts: tl.tensor,
    tokens: tl.tensor,
    PARTS: tl.constexpr,
    ROOM: tl.constexpr,
) -> None:
    """Fill `tokens` of filtered rows whose candidates there was room for. Grid [N]."""
    row = tl.program_id(0).to(tl.int64)
    if is_filtered(settings, candidates, row):
        if tl.load(candidates.counts + row) <= ROOM:
            ranks, valid = load_candidates(candidates, row, ROOM)
            total = needed_total(settings, candidates, row, num_parts, PARTS)
            tl.store(tokens + row, _choose(settings, row, ranks, valid, tl.load(candidates.tops + row), total))


@triton.jit
def load_candidates(candidates: tables.Candidates, row: tl.tensor, ROOM: tl.constexpr) -> tuple[tl.tensor, tl.tensor]:
    """Ranks [ROOM] int64 of a row's candidates, and where there are any."""
    at = tl.arange(0, ROOM)
    valid = at < tl.load(candidates.counts + row)
    return tl.load(candidates.ranks + row * ROOM + at, mask=valid, other=LOWEST_RANK), valid


@triton.jit
def needed_total(
    settings: tl.tensor, candidates: tables.Candidates, row: tl.tensor, num_parts: tl.tensor, PARTS: tl.constexpr
) -> tl.tensor:
    """The mass (int64) of everything where `needs_total`, else 0."""
    total = tl.full((), 0, tl.int64)
    if needs_total(settings, row):
        total = whole_total(row_totals(candidates, row, num_parts, PARTS))
    return total


@triton.jit
def _choose(
    settings: tl.tensor, row: tl.tensor, ranks: tl.tensor, valid: tl.tensor, top: tl.tensor, total: tl.tensor
) -> tl.tensor:
    """The token (int32) out of candidates [n]."""
    ids = ids_of(ranks)
    key = row_key(whole_setting(settings, row, _SEED).to(tl.uint64), whole_setting(settings, row, _POSITION))
    is_kept = valid & (ranks >= cut_candidates(settings, row, ranks, valid, top, total))
    kept = tl.where(is_kept, logits_of(ranks), -float("inf"))
    _, token = best_of(kept, ids, hash_ids(key, ids), real_setting(settings, row, _INVERSE))
    return token


@triton.jit
def cut_candidates(
    settings: tl.tensor, row: tl.tensor, ranks: tl.tensor, valid: tl.tensor, top: tl.tensor, total: tl.tensor
) -> tl.tensor:
    """The lowest rank (int64) that the filters keep, out of candidates [n]; `total` is used where `needs_total`."""
    inverse, top_p = real_setting(settings, row, _INVERSE), real_setting(settings, row, _TOP_P)
    top_k = whole_setting(settings, row, _TOP_K)
    kept_from, highest = tl.min(tl.where(valid, ranks, -LOWEST_RANK)), tl.max(ranks)
    if top_k > 0:
        kept_from = cut(ranks, valid.to(tl.int64), top_k.to(tl.float64), kept_from, highest)
    if top_p < 1.0:
        mass = tl.where(valid & (ranks >= kept_from), masses(exponents_of(logits_of(ranks), top, inverse)), 0)
        if top_k > 0:
            total = tl.sum(mass)
        kept_from = cut(ranks, mass, top_p * total.to(tl.float64), kept_from, highest)
    return kept_from
