"""Joins the parts of a logit row: its token, or the bounds within which its filters have to be looked for."""

from __future__ import annotations

import triton
import triton.language as tl

from outrider_kernels import contracts
from outrider_kernels.triton_twins import tables
from outrider_kernels.triton_twins.order_triton import ID_BITS, LAST_ID, LOWEST_RANK, cut, order_keys, ranks_of
from outrider_kernels.triton_twins.row_blocks_triton import num_blocks, whole_setting

_OWNER = tl.constexpr(int(tables.Setting.OWNER))
_TOP_K = tl.constexpr(int(tables.Setting.TOP_K))
_KIND = tl.constexpr(int(tables.Setting.KIND))
_GREEDY = tl.constexpr(int(tables.Kind.GREEDY))
_FILTERED = tl.constexpr(int(tables.Kind.FILTERED))
_BAD_FLAG = tl.constexpr(tables.BAD_FLAG)
_PADDING_ID = tl.constexpr(contracts.PADDING_ID)


@triton.jit
def plan(
    table: tables.LogitTable,
    edits: tables.Edits,
    settings: tl.tensor,
    parts: tables.Parts,
    candidates: tables.Candidates,
    tokens: tl.tensor,
    PARTS: tl.constexpr,
    SPANS: tl.constexpr,
    BLOCK: tl.constexpr,
    SPAN: tl.constexpr,
    EDITED: tl.constexpr,
) -> None:
    """Fill the tops of `candidates`; floors and counts too of filtered rows, `tokens` [N] int32 of others. Grid [N].

    PARTS and SPANS are powers of two that hold a row's parts and spans.
    """
    row = tl.program_id(0).to(tl.int64)
    kind = whole_setting(settings, row, _KIND)
    part = tl.arange(0, PARTS)
    inside = part < parts.num_parts
    place = row * parts.num_parts + part
    tops = tl.load(parts.tops + place, mask=inside, other=-float("inf"))
    top = tl.max(tops)
    if kind == _GREEDY:
        token = tl.min(tl.where(tops == top, tl.load(parts.top_ids + place, mask=inside, other=LAST_ID), LAST_ID))
    else:
        bests = tl.load(parts.bests + place, mask=inside, other=-float("inf"))
        best_ids = tl.load(parts.best_ids + place, mask=inside, other=LAST_ID)
        token = tl.min(tl.where(bests == tl.max(bests), best_ids, LAST_ID))
    tl.store(tokens + row, tl.where(top == -float("inf"), _PADDING_ID, token))
    # Nothing is looked for in a row with NaN or +inf: it will be refused.
    flags = tl.load(parts.flags + place, mask=inside, other=0)
    tl.store(candidates.tops + row, tl.where(tl.max(flags) < _BAD_FLAG, top, -float("inf")))
    if kind == _FILTERED:
        used = num_blocks(table, edits, whole_setting(settings, row, _OWNER), BLOCK, EDITED) * (BLOCK // SPAN)
        floor = order_keys(tl.full((), -float("inf"), tl.float32))
        top_k = whole_setting(settings, row, _TOP_K)
        if (top_k > 0) & (top_k <= used):
            floor = _kth_largest(parts.maxima + row * parts.num_spans, used, top_k, SPANS)
        tl.store(candidates.floors + row, floor)
        tl.store(candidates.counts + row, 0)


@triton.jit
def _kth_largest(maxima: tl.tensor, used: tl.tensor, k: tl.tensor, SPANS: tl.constexpr) -> tl.tensor:
    """Order key (int32) of the k-th largest maximum: k spans hold at least k logits as large."""
    span = tl.arange(0, SPANS)
    ranks = ranks_of(tl.load(maxima + span, mask=span < used, other=-float("inf")), span)
    weights = (span < used).to(tl.int64)
    lowest = tl.min(tl.where(span < used, ranks, -LOWEST_RANK))
    return (cut(ranks, weights, k.to(tl.float64), lowest, tl.max(ranks)) >> ID_BITS).to(tl.int32)
