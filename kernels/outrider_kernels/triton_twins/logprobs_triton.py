"""Log-probabilities of chosen and likeliest ids, out of what `scan`, `plan` and `add_up` found."""

from __future__ import annotations

import triton
import triton.language as tl

from outrider_kernels import mass
from outrider_kernels.triton_twins import tables
from outrider_kernels.triton_twins.gather_triton import row_totals, whole_total
from outrider_kernels.triton_twins.order_triton import LOWEST_RANK, ids_of, logits_of, ranks_of

_MASS_UNIT = tl.constexpr(1.0 / mass.MASS_ONE)


@triton.jit
def top_logprobs(
    table: tables.LogitTable,
    parts: tables.Parts,
    candidates: tables.Candidates,
    chosen: tl.tensor,
    chosen_logprobs: tl.tensor,
    top_ids: tl.tensor,
    top_values: tl.tensor,
    num_top: tl.tensor,
    PARTS: tl.constexpr,
    SPANS: tl.constexpr,
    SPAN: tl.constexpr,
) -> None:
    """One logit row. Grid [M].

    Every span of ids stands with its largest log-probability; the first of them gives its next id, then stands with
    the one after.

    Args:
        table: raw logits.
        parts: `maxima` of them.
        candidates: `tops` and `totals` of them, at temperature 1.
        chosen: [M] int32 ids.
        chosen_logprobs: [M] float32, written to.
        top_ids: [M, num_top] int32, written to.
        top_values: [M, num_top] float32, written to.
        num_top: at most V.
        PARTS: power of two that holds a row's parts.
        SPANS: power of two that holds a row's spans.
        SPAN: ids of one.
    """
    row = tl.program_id(0).to(tl.int64)
    normaliser = _normaliser(candidates, row, parts.num_parts, PARTS)
    logits = table.logits + row * table.stride
    tl.store(chosen_logprobs + row, _logprobs(tl.load(logits + tl.load(chosen + row)), normaliser))
    span = tl.arange(0, SPANS)
    used = span < tl.cdiv(table.size, SPAN)
    maxima = tl.load(parts.maxima + row * parts.num_spans + span, mask=used, other=-float("inf"))
    leaders = tl.where(used, ranks_of(_logprobs(maxima, normaliser), span), LOWEST_RANK)
    before = tl.full((), -LOWEST_RANK, tl.int64)
    for place in range(num_top):
        leader = ids_of(tl.max(leaders))
        ids = leader * SPAN + tl.arange(0, SPAN)
        inside = ids < table.size
        values = _logprobs(tl.load(logits + ids, mask=inside, other=-float("inf")), normaliser)
        ranks = tl.where(inside, ranks_of(values, ids), LOWEST_RANK)
        found = tl.max(tl.where(ranks < before, ranks, LOWEST_RANK))
        tl.store(top_ids + row * num_top + place, ids_of(found))
        tl.store(top_values + row * num_top + place, logits_of(found))
        following = tl.max(tl.where(ranks < found, ranks, LOWEST_RANK))
        standing = tl.where(following == LOWEST_RANK, LOWEST_RANK, ranks_of(logits_of(following), leader))
        leaders = tl.where(span == leader, standing, leaders)
        before = found


@triton.jit
def count_likelier(
    table: tables.LogitTable,
    candidates: tables.Candidates,
    chosen: tl.tensor,
    likelier: tl.tensor,
    blocks_a_part: tl.tensor,
    PARTS: tl.constexpr,
    BLOCK: tl.constexpr,
) -> None:
    """Fill `likelier` [M, parts] int32: ids of a part that come before the chosen one. Grid [M, parts]."""
    row, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    normaliser = _normaliser(candidates, row, tl.num_programs(1), PARTS)
    logits = table.logits + row * table.stride
    own_id = tl.load(chosen + row)
    own = ranks_of(_logprobs(tl.load(logits + own_id), normaliser), own_id)
    counts = tl.zeros((BLOCK,), tl.int32)
    first = part * blocks_a_part
    for block in range(first, tl.minimum(first + blocks_a_part, tl.cdiv(table.size, BLOCK))):
        ids = block * BLOCK + tl.arange(0, BLOCK)
        inside = ids < table.size
        values = _logprobs(tl.load(logits + ids, mask=inside, other=-float("inf")), normaliser)
        counts += (inside & (ranks_of(values, ids) > own)).to(tl.int32)
    tl.store(likelier + row * tl.num_programs(1) + part, tl.sum(counts))


@triton.jit
def _normaliser(candidates: tables.Candidates, row: tl.tensor, num_parts: tl.tensor, PARTS: tl.constexpr) -> tl.tensor:
    """Logarithm (float64) of the sum of all exponentials of a logit row."""
    total = whole_total(row_totals(candidates, row, num_parts, PARTS))
    return tl.load(candidates.tops + row).to(tl.float64) + tl.log(total.to(tl.float64) * _MASS_UNIT)


@triton.jit
def _logprobs(logits: tl.tensor, normaliser: tl.tensor) -> tl.tensor:
    """float32."""
    return (logits.to(tl.float64) - normaliser).to(tl.float32)
