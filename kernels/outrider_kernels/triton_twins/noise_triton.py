"""Triton twins of `outrider_kernels.noise`: the same integer hash, bit for bit, and its Gumbel noise in float64."""

from __future__ import annotations

import triton
import triton.language as tl

from outrider_kernels import noise
from outrider_kernels.triton_twins.registry import Variant

_GOLDEN = tl.constexpr(noise.GOLDEN)
_MIX_1 = tl.constexpr(noise.MIX_1)
_MIX_2 = tl.constexpr(noise.MIX_2)
_ROUND_1 = tl.constexpr(noise.ROUND_1)
_ROUND_2 = tl.constexpr(noise.ROUND_2)
_ROUND_3 = tl.constexpr(noise.ROUND_3)


@triton.jit
def mix64(value: tl.tensor) -> tl.tensor:
    """Twin of `noise.mix64` on uint64."""
    value = (value ^ (value >> 30)) * _MIX_1
    value = (value ^ (value >> 27)) * _MIX_2
    return value ^ (value >> 31)


@triton.jit
def row_key(seed: tl.tensor, position: tl.tensor) -> tl.tensor:
    """Both halves of `noise.row_key` in one uint64: high << 32 | low.

    Args:
        seed: uint64.
        position: int64.
    """
    golden = tl.full((), _GOLDEN, tl.uint64)
    return mix64(mix64(seed + golden) + (position.to(tl.uint64) + 1) * golden)


@triton.jit
def hash_ids(key: tl.tensor, ids: tl.tensor) -> tl.tensor:
    """Twin of `noise.hash_ids`.

    Args:
        key: `row_key`.
        ids: int32, any shape, read as uint32.
    """
    x = ids.to(tl.uint32) ^ key.to(tl.uint32)
    x = (x ^ (x >> 17)) * _ROUND_1
    x = x ^ (key >> 32).to(tl.uint32)
    x = (x ^ (x >> 11)) * _ROUND_2
    x = (x ^ (x >> 15)) * _ROUND_3
    return x ^ (x >> 14)


@triton.jit
def gumbel(hashes: tl.tensor) -> tl.tensor:
    """Noise of hashes, float64."""
    uniform = (hashes.to(tl.float64) + 0.5) * 2.3283064365386963e-10  # 2**-32, exactly
    return -tl.log(-tl.log(uniform))


@triton.jit
def noise_of_ids(
    seeds: tl.tensor,
    positions: tl.tensor,
    ids: tl.tensor,
    hashes: tl.tensor,
    noises: tl.tensor,
    size: tl.tensor,
    BLOCK: tl.constexpr,
) -> None:
    """Hashes and noise of one row of ids: lets tests and GPUs compare with the other forms.

    Args:
        seeds: [1] uint64.
        positions: [1] int64.
        ids: [size] int32.
        hashes: [size] int32, written to: the bits of uint32.
        noises: [size] float64, written to.
        size: how many ids.
        BLOCK: ids of one program.
    """
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < size
    key = row_key(tl.load(seeds), tl.load(positions))
    hashed = hash_ids(key, tl.load(ids + at, mask=inside, other=0))
    tl.store(hashes + at, hashed.to(tl.int32, bitcast=True), mask=inside)
    tl.store(noises + at, gumbel(hashed), mask=inside)


VARIANTS = (
    Variant(
        name="noise of ids",
        kernel=noise_of_ids,
        signature={
            "seeds": "*u64",
            "positions": "*i64",
            "ids": "*i32",
            "hashes": "*i32",
            "noises": "*fp64",
            "size": "i32",
            "BLOCK": "constexpr",
        },
        constants={"BLOCK": 1024},
    ),
)
