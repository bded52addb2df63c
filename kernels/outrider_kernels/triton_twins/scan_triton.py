"""The one pass over memory: largest logit, bad logits and, without filters, noisy arg-max of parts of logit rows."""

from __future__ import annotations

import triton
import triton.language as tl

from outrider_kernels.triton_twins import tables
from outrider_kernels.triton_twins.noise_triton import gumbel, hash_ids, row_key
from outrider_kernels.triton_twins.order_triton import LAST_ID
from outrider_kernels.triton_twins.row_blocks_triton import fetch, num_blocks, real_setting, whole_setting
from outrider_kernels.triton_twins.scores_triton import needed_bound, score_bounds

_FINITE_FLAG = tl.constexpr(tables.FINITE_FLAG)
_BAD_FLAG = tl.constexpr(tables.BAD_FLAG)
_OWNER = tl.constexpr(int(tables.Setting.OWNER))
_POSITION = tl.constexpr(int(tables.Setting.POSITION))
_SEED = tl.constexpr(int(tables.Setting.SEED))
_INVERSE = tl.constexpr(int(tables.Setting.INVERSE))
_KIND = tl.constexpr(int(tables.Setting.KIND))
_NOISY = tl.constexpr(int(tables.Kind.NOISY))
_FILTERED = tl.constexpr(int(tables.Kind.FILTERED))


@triton.jit
def scan(
    table: tables.LogitTable,
    edits: tables.Edits,
    settings: tl.tensor,
    parts: tables.Parts,
    blocks_a_part: tl.tensor,
    BLOCK: tl.constexpr,
    SPAN: tl.constexpr,
    EDITED: tl.constexpr,
) -> None:
    """Fill one place of `parts`. Grid [N, parts]."""
    row, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    owner = whole_setting(settings, row, _OWNER)
    kind = whole_setting(settings, row, _KIND)
    inverse = real_setting(settings, row, _INVERSE)
    key = row_key(whole_setting(settings, row, _SEED).to(tl.uint64), whole_setting(settings, row, _POSITION))
    tops, top_ids = tl.full((BLOCK,), -float("inf"), tl.float32), tl.full((BLOCK,), LAST_ID, tl.int32)
    flags = tl.zeros((BLOCK,), tl.int32)
    best, best_id = tl.full((), -float("inf"), tl.float64), tl.full((), LAST_ID, tl.int32)
    needed = tl.full((), -float("inf"), tl.float32)
    first = part * blocks_a_part
    end = tl.minimum(first + blocks_a_part, num_blocks(table, edits, owner, BLOCK, EDITED))
    for block in tl.range(first, end, num_stages=3):  # loads run ahead of what is made of them
        raw, logits, ids = fetch(table, edits, row, owner, block, BLOCK, EDITED)
        flags |= tl.where(raw < float("inf"), tl.where(raw > -float("inf"), _FINITE_FLAG, 0), _BAD_FLAG)
        better = (logits > tops) | ((logits == tops) & (ids < top_ids))
        tops, top_ids = tl.where(better, logits, tops), tl.where(better, ids, top_ids)
        if kind == _NOISY:
            bounds = score_bounds(logits, hash_ids(key, ids), inverse.to(tl.float32))
            highest = tl.max(bounds)
            while (highest >= needed) & (highest > -float("inf")):
                # One by one: it is one or two ids a row and block, and only these need float64.
                candidate = tl.min(tl.where(bounds == highest, ids, LAST_ID))
                logit = tl.max(tl.where(ids == candidate, logits, -float("inf")))
                score = logit.to(tl.float64) * inverse + gumbel(hash_ids(key, candidate))
                wins = (score > best) | ((score == best) & (candidate < best_id))
                best, best_id = tl.where(wins, score, best), tl.where(wins, candidate, best_id)
                needed = needed_bound(best)
                bounds = tl.where(ids == candidate, -float("inf"), bounds)
                highest = tl.max(bounds)
        if kind == _FILTERED:
            spans = block * (BLOCK // SPAN) + tl.arange(0, BLOCK // SPAN)
            maxima = tl.max(tl.reshape(logits, (BLOCK // SPAN, SPAN)), axis=1)
            tl.store(parts.maxima + row * parts.num_spans + spans, maxima)
    place = row * parts.num_parts + part
    top = tl.max(tops)
    tl.store(parts.tops + place, top)
    tl.store(parts.top_ids + place, tl.min(tl.where(tops == top, top_ids, LAST_ID)))
    tl.store(parts.bests + place, best)
    tl.store(parts.best_ids + place, best_id)
    tl.store(parts.flags + place, tl.max(flags & _FINITE_FLAG) | tl.max(flags & _BAD_FLAG))
