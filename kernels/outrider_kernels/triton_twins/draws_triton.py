"""Triton twins of `outrider_kernels.draws`, and the token that a row draws from the law at the place where it stops."""

from __future__ import annotations

import triton
import triton.language as tl

from outrider_kernels import draws, noise
from outrider_kernels.triton_twins import tables
from outrider_kernels.triton_twins.noise_triton import mix64
from outrider_kernels.triton_twins.registry import Variant

TOKEN_BLOCK = 1024
FEWEST_DEPTH = 64
"""Proposed ids that the compiled form has room for; deeper rows have another."""
_GOLDEN = tl.constexpr(noise.GOLDEN)
_SALT = tl.constexpr(draws.SALT)
_TOKEN_PURPOSE = tl.constexpr(draws.TOKEN_PURPOSE)
_FIRST_TEST_PURPOSE = tl.constexpr(draws.FIRST_TEST_PURPOSE)
_UNIT_SHIFT = tl.constexpr(draws.UNIT_SHIFT)
_UNIT = tl.constexpr(2.0 ** (draws.UNIT_SHIFT - 64))


@triton.jit
def draw(seed: tl.tensor, position: tl.tensor, purpose: tl.tensor) -> tl.tensor:
    """Twin of `draws.draw`: uint64 from a seed (uint64), a position and a purpose (both int64)."""
    golden = tl.full((), _GOLDEN, tl.uint64)
    salted = mix64(mix64(seed + golden) ^ tl.full((), _SALT, tl.uint64))
    key = mix64(salted + (position.to(tl.uint64) + 1) * golden)
    return mix64(key + (purpose.to(tl.uint64) + 1) * golden)


@triton.jit
def coin_bits(rows: tables.TossRows, row: tl.tensor, step: tl.tensor) -> tl.tensor:
    """The draw (uint64) that tests the proposed id at place `step` of a row."""
    seed, position = tl.load(rows.seeds + row), tl.load(rows.first_positions + row)
    return draw(seed, position, (step + _FIRST_TEST_PURPOSE).to(tl.int64))


@triton.jit
def below(bits: tl.tensor, total: tl.tensor) -> tl.tensor:
    """Twin of `draws.below`."""
    return tl.umulhi(bits, total.to(tl.uint64)).to(tl.int64)


@triton.jit
def unit(bits: tl.tensor) -> tl.tensor:
    """Twin of `draws.unit`."""
    return ((bits >> _UNIT_SHIFT).to(tl.float64) + 0.5) * _UNIT


@triton.jit
def draw_tokens(
    laws: tables.Laws,
    rows: tables.TossRows,
    accepted_counts: tl.tensor,
    emitted: tl.tensor,
    BLOCK: tl.constexpr,
    DEPTH: tl.constexpr,
) -> None:
    """Write what a row emits: its accepted ids, and a token drawn from the law at the place of the stop. Grid [B].

    Args:
        laws: less, at the place of the stop, what must not come.
        rows: B rows.
        accepted_counts: [B] int32.
        emitted: [N] int32 of PADDING_ID, written to; rows whose law lists no id keep it.
        BLOCK: ids looked at in one step, a power of two.
        DEPTH: a power of two, no row proposes more ids.
    """
    row = tl.program_id(0)
    start, accepted = tl.load(rows.logit_starts + row), tl.load(accepted_counts + row)
    places = tl.arange(0, DEPTH)
    tokens = tl.load(rows.proposed + start - row + places, mask=places < accepted, other=0)
    tl.store(emitted + start + places, tokens, mask=places < accepted)
    total = tl.load(laws.totals + start + accepted)
    position = tl.load(rows.first_positions + row) + accepted
    threshold = below(draw(tl.load(rows.seeds + row), position, tl.full((), _TOKEN_PURPOSE, tl.int64)), total)
    at = laws.masses + (start + accepted).to(tl.int64) * laws.size
    offsets = tl.arange(0, BLOCK)
    before = threshold * 0
    block = start * 0
    mass = tl.load(at + offsets, mask=offsets < laws.size, other=0)
    inside = tl.sum(mass, 0)
    while (before + inside <= threshold) & (total > 0):
        before += inside
        block += BLOCK
        mass = tl.load(at + block + offsets, mask=block + offsets < laws.size, other=0)
        inside = tl.sum(mass, 0)
    passed = tl.cumsum(mass, 0) <= threshold - before
    tl.store(emitted + start + accepted, block + tl.sum(passed.to(tl.int32), 0), mask=total > 0)


LAWS_KINDS = tables.Laws("*i64", "*i64", "i32")
ROWS_KINDS = tables.TossRows("*i32", "*i32", "*u64", "*i64")
VARIANTS = tuple(
    Variant(
        name=name,
        kernel=draw_tokens,
        signature={
            "laws": LAWS_KINDS,
            "rows": ROWS_KINDS,
            "accepted_counts": "*i32",
            "emitted": "*i32",
            "BLOCK": "constexpr",
            "DEPTH": "constexpr",
        },
        constants={"BLOCK": TOKEN_BLOCK, "DEPTH": depth},
        hot=True,
        unaligned=frozenset({"emitted"}),
    )
    for name, depth in (("draw tokens", FEWEST_DEPTH), ("draw tokens, deep rows", 4 * FEWEST_DEPTH))
)
