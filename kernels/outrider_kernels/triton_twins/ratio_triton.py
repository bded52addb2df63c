"""Triton twins of `outrider_kernels.ratio_verify`: where rows stop, what is left there, and the token drawn from it.

Laws come as dense masses, int64 [N, V], which the first kernel changes in place to the rest at the place of the stop.
Everything that is summed is a whole number, so that the ids are those of the reference, bit for bit.
"""

from __future__ import annotations

import triton
import triton.language as tl

from outrider_kernels import draws, noise
from outrider_kernels.draft_rows import MAX_LISTED_IDS
from outrider_kernels.triton_twins.noise_triton import mix64
from outrider_kernels.triton_twins.registry import Variant

_GOLDEN = tl.constexpr(noise.GOLDEN)
_SALT = tl.constexpr(draws.SALT)
_TOKEN_PURPOSE = tl.constexpr(draws.TOKEN_PURPOSE)
_FIRST_TEST_PURPOSE = tl.constexpr(draws.FIRST_TEST_PURPOSE)
_UNIT_SHIFT = tl.constexpr(draws.UNIT_SHIFT)
_UNIT = tl.constexpr(2.0 ** (draws.UNIT_SHIFT - 64))
_MOST_MASS = tl.constexpr(2.0**62)


@triton.jit
def draw(seed: tl.tensor, position: tl.tensor, purpose: tl.tensor) -> tl.tensor:
    """Twin of `draws.draw`: uint64 from a seed (uint64), a position and a purpose (both int64)."""
    golden = tl.full((), _GOLDEN, tl.uint64)
    salted = mix64(mix64(seed + golden) ^ tl.full((), _SALT, tl.uint64))
    key = mix64(salted + (position.to(tl.uint64) + 1) * golden)
    return mix64(key + (purpose.to(tl.uint64) + 1) * golden)


@triton.jit
def below(bits: tl.tensor, total: tl.tensor) -> tl.tensor:
    """Twin of `draws.below`."""
    return tl.umulhi(bits, total.to(tl.uint64)).to(tl.int64)


@triton.jit
def unit(bits: tl.tensor) -> tl.tensor:
    """Twin of `draws.unit`."""
    return ((bits >> _UNIT_SHIFT).to(tl.float64) + 0.5) * _UNIT


@triton.jit
def draft_masses(
    starts: tl.tensor, ids: tl.tensor, weights: tl.tensor, law: tl.tensor, token: tl.tensor, total: tl.tensor,
    LISTED: tl.constexpr,
) -> tuple[tl.tensor, tl.tensor]:  # fmt: skip
    """Listed ids of a law and their d of the contract; places past its end hold id -1 and 0. A certain id is listed."""
    start, end = tl.load(starts + law), tl.load(starts + law + 1)
    at = start + tl.arange(0, LISTED)
    listed = tl.load(ids + at, mask=at < end, other=-1)
    weight = tl.load(weights + at, mask=at < end, other=0)
    whole = tl.maximum(tl.sum(weight, 0), 1).to(tl.float64)
    drawn = (weight.to(tl.float64) * total.to(tl.float64) / whole).to(tl.int64)
    is_certain = (start == end) & (tl.arange(0, LISTED) == 0)
    return tl.where(is_certain, token, listed), tl.where(is_certain, total, drawn)


@triton.jit
def stop_rows(
    masses: tl.tensor,
    totals: tl.tensor,
    logit_starts: tl.tensor,
    proposed: tl.tensor,
    seeds: tl.tensor,
    positions: tl.tensor,
    starts: tl.tensor,
    ids: tl.tensor,
    weights: tl.tensor,
    accepted_counts: tl.tensor,
    vocab_size: tl.tensor,
    BLOCK_RULE: tl.constexpr,
    LISTED: tl.constexpr,
) -> None:
    """Find how many ids of row `program_id(0)` are accepted, and leave the rest of the law at the place of the stop.

    Args:
        masses: [N, V] int64, changed at the stop.
        totals: [N] int64 sums of `masses`, changed likewise.
        logit_starts: [B + 1] int32.
        proposed: [N - B] int32.
        seeds: [B] uint64.
        positions: [B] int64, `VerifyRows.first_position`.
        starts: [N - B + 1] int32, with `ids` int32 and `weights` int64: `DraftRows`.
        ids: see there.
        weights: see there.
        accepted_counts: [B] int32, written to.
        vocab_size: V.
        BLOCK_RULE: block verification instead of the ratio test.
        LISTED: a power of two, no law lists more ids.
    """
    row = tl.program_id(0)
    start = tl.load(logit_starts + row)
    depth = tl.load(logit_starts + row + 1) - start - 1
    seed, position = tl.load(seeds + row), tl.load(positions + row)
    first = start - row
    accepted = depth * 0
    kept_survival = tl.full((), 1.0, tl.float64)
    survival = tl.full((), 1.0, tl.float64)
    step = depth * 0
    going = True
    while going:
        total = tl.load(totals + start + step)
        is_last = (total == 0) | (step == depth)
        law = tl.where(is_last, tl.maximum(first + step - 1, 0), first + step)
        token = tl.load(proposed + law, mask=(depth > 0), other=0)
        listed, drawn = draft_masses(starts, ids, weights, law * (depth > 0), token, total, LISTED)
        at = (start + step).to(tl.int64) * vocab_size
        mass = tl.load(masses + at + listed, mask=listed >= 0, other=0)
        own_mass = tl.load(masses + at + token)
        own_drawn = tl.max(tl.where(listed == token, drawn, 0), 0)
        if BLOCK_RULE:
            excess = tl.maximum(survival * mass.to(tl.float64) - drawn.to(tl.float64), 0.0).to(tl.int64)
            unlisted = total - tl.sum(mass, 0)
            rest = survival * unlisted.to(tl.float64) + tl.sum(tl.where(listed >= 0, excess, 0), 0).to(tl.float64)
            rest = rest / tl.maximum(total, 1).to(tl.float64)
            chance = tl.where(survival >= 1.0, 1.0, rest / tl.maximum(rest + (1.0 - survival), 1e-300))
            chance = tl.where(is_last, survival, chance)
            coin = unit(draw(seed, position, (step + _FIRST_TEST_PURPOSE - 1).to(tl.int64)))
            passes = (step > 0) & (coin < chance)
            accepted = tl.where(passes, step, accepted)
            kept_survival = tl.where(passes, survival, kept_survival)
            ratio = own_mass.to(tl.float64) / tl.maximum(own_drawn, 1).to(tl.float64)
            survival = tl.minimum(survival * ratio, 1.0)
            going = is_last == 0
        else:
            bits = draw(seed, position, (step + _FIRST_TEST_PURPOSE).to(tl.int64))
            going = (is_last == 0) & (below(bits, own_drawn) < own_mass)
            accepted = tl.where(going, step + 1, accepted)
        step += 1
    tl.store(accepted_counts + row, accepted)
    total = tl.load(totals + start + accepted)
    law = tl.minimum(first + accepted, first + depth - 1) * (depth > 0)
    token = tl.load(proposed + law, mask=depth > 0, other=0)
    listed, drawn = draft_masses(starts, ids, weights, law, token, total, LISTED)
    at = (start + accepted).to(tl.int64) * vocab_size
    listed = tl.where(accepted < depth, listed, -1)  # scalars in masks would be more than booleans when interpreted
    mass = tl.load(masses + at + listed, mask=listed >= 0, other=0)
    scaled = tl.minimum(drawn.to(tl.float64) / tl.maximum(kept_survival, 1e-300), _MOST_MASS).to(tl.int64)
    taken = tl.minimum(tl.where(kept_survival < 1.0, scaled, drawn), mass)
    rest_total = total - tl.sum(tl.where(listed >= 0, taken, 0), 0)
    listed = tl.where(rest_total > 0, listed, -1)
    tl.store(masses + at + listed, mass - taken, mask=listed >= 0)
    tl.store(totals + start + accepted, tl.where(rest_total > 0, rest_total, total))


@triton.jit
def draw_tokens(
    masses: tl.tensor,
    totals: tl.tensor,
    logit_starts: tl.tensor,
    proposed: tl.tensor,
    seeds: tl.tensor,
    positions: tl.tensor,
    accepted_counts: tl.tensor,
    emitted: tl.tensor,
    vocab_size: tl.tensor,
    BLOCK: tl.constexpr,
    DEPTH: tl.constexpr,
) -> None:
    """Write what row `program_id(0)` emits: its accepted ids, and a token drawn from the law at the place of the stop.

    Args:
        masses: as `stop_rows` leaves them, as are `totals` and `accepted_counts`.
        totals: see there.
        logit_starts: as in `stop_rows`, as are `proposed`, `seeds`, `positions` and `vocab_size`.
        proposed: see there.
        seeds: see there.
        positions: see there.
        accepted_counts: see there.
        emitted: [N] int32 of PADDING_ID, written to; rows whose law lists no id keep it.
        vocab_size: V.
        BLOCK: ids looked at in one step, a power of two.
        DEPTH: a power of two, no row proposes more ids.
    """
    row = tl.program_id(0)
    start, accepted = tl.load(logit_starts + row), tl.load(accepted_counts + row)
    places = tl.arange(0, DEPTH)
    tokens = tl.load(proposed + start - row + places, mask=places < accepted, other=0)
    tl.store(emitted + start + places, tokens, mask=places < accepted)
    total = tl.load(totals + start + accepted)
    bits = draw(tl.load(seeds + row), tl.load(positions + row) + accepted, tl.full((), _TOKEN_PURPOSE, tl.int64))
    threshold = below(bits, total)
    at = masses + (start + accepted).to(tl.int64) * vocab_size
    offsets = tl.arange(0, BLOCK)
    before = threshold * 0
    block = vocab_size * 0
    mass = tl.load(at + offsets, mask=offsets < vocab_size, other=0)
    inside = tl.sum(mass, 0)
    while (before + inside <= threshold) & (total > 0):
        before += inside
        block += BLOCK
        mass = tl.load(at + block + offsets, mask=block + offsets < vocab_size, other=0)
        inside = tl.sum(mass, 0)
    passed = tl.cumsum(mass, 0) <= threshold - before
    tl.store(emitted + start + accepted, block + tl.sum(passed.to(tl.int32), 0), mask=total > 0)


_ROWS = {"logit_starts": "*i32", "proposed": "*i32", "seeds": "*u64", "positions": "*i64"}
_STOP_SIGNATURE = {
    "masses": "*i64",
    "totals": "*i64",
    **_ROWS,
    "starts": "*i32",
    "ids": "*i32",
    "weights": "*i64",
    "accepted_counts": "*i32",
    "vocab_size": "i32",
    "BLOCK_RULE": "constexpr",
    "LISTED": "constexpr",
}
TOKEN_BLOCK = 1024
MAX_DEPTH = 64
VARIANTS = (
    *(
        Variant(
            name=f"stop rows, {rule}",
            kernel=stop_rows,
            signature=_STOP_SIGNATURE,
            constants={"BLOCK_RULE": is_block, "LISTED": MAX_LISTED_IDS},
            num_warps=1,
            hot=True,
        )
        for rule, is_block in (("ratio", False), ("block", True))
    ),
    Variant(
        name="draw tokens",
        kernel=draw_tokens,
        signature={
            "masses": "*i64",
            "totals": "*i64",
            **_ROWS,
            "accepted_counts": "*i32",
            "emitted": "*i32",
            "vocab_size": "i32",
            "BLOCK": "constexpr",
            "DEPTH": "constexpr",
        },
        constants={"BLOCK": TOKEN_BLOCK, "DEPTH": MAX_DEPTH},
        hot=True,
    ),
)
