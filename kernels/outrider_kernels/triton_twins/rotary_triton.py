"""Rotary positions on GPUs, straight from the fused projection into queries and paged cache, and the plain cache write.

Twin of `rotary_numba` and of `paged_attention_numba.write_cache`: same formula, sizes and rounding, and the same bits,
for no operations are fused. The cache may be of the projection's dtype or of float32.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import triton
import triton.language as tl

from outrider_kernels.paged_attention import BLOCK_SIZE
from outrider_kernels.triton_twins.numbers_triton import narrow
from outrider_kernels.triton_twins.registry import LAUNCH_OPTIONS, Variant


class RotaryTables(NamedTuple):
    """Cosines and sines of all positions."""

    cosines: torch.Tensor
    """[L, D / 2] float32"""
    sines: torch.Tensor
    """[L, D / 2] float32"""


class RotaryOutputs(NamedTuple):
    """Where rotated heads and values go; all contiguous."""

    queries: torch.Tensor
    """[T, H, D]"""
    keys: torch.Tensor
    """[num_blocks, KH, D, BLOCK_SIZE]"""
    values: torch.Tensor
    """[num_blocks, KH, BLOCK_SIZE, D]"""


def rotate_and_write(
    projected: torch.Tensor,
    tables: RotaryTables,
    positions: torch.Tensor,
    slots: torch.Tensor,
    outputs: RotaryOutputs,
) -> None:
    """Rotate queries into `outputs.queries`, and keys into the cache, where values go as they are.

    Args:
        projected: [T, (H + 2 * KH) * D], contiguous.
        tables: reach beyond every position.
        positions: [T] int32.
        slots: [T] int64, block * BLOCK_SIZE + offset of each token; no slot twice.
        outputs: all written to.

    Raises:
        ValueError: shapes do not fit, or a tensor is not contiguous.
    """
    count, heads, size = outputs.queries.shape
    kv_heads = _kv_heads(outputs.keys, outputs.values, size)
    width = (heads + 2 * kv_heads) * size
    if projected.shape != (count, width) or not (projected.is_contiguous() and outputs.queries.is_contiguous()):
        raise ValueError(f"expected contiguous projected {(count, width)}, given {tuple(projected.shape)}")
    if count == 0:
        return
    rotate_heads[(count, heads + 2 * kv_heads)](
        projected, *tables, positions, slots, *outputs,
        HEADS=heads, KV_HEADS=kv_heads, SIZE=size,
        HALF=triton.next_power_of_2(size // 2), BLOCK=BLOCK_SIZE, num_warps=1, **LAUNCH_OPTIONS,
    )  # fmt: skip


def write_cache(
    keys: torch.Tensor, values: torch.Tensor, key_cache: torch.Tensor, value_cache: torch.Tensor, slots: torch.Tensor
) -> None:
    """Store keys and values of T tokens in the cache.

    Args:
        keys: [T, KH, D], contiguous.
        values: [T, KH, D], contiguous.
        key_cache: [num_blocks, KH, D, BLOCK_SIZE], written to.
        value_cache: [num_blocks, KH, BLOCK_SIZE, D], written to.
        slots: [T] int64, block * BLOCK_SIZE + offset of each token; no slot twice.

    Raises:
        ValueError: shapes do not fit, or a tensor is not contiguous.
    """
    size = keys.shape[2]
    shape = (len(slots), _kv_heads(key_cache, value_cache, size), size)
    if not keys.shape == values.shape == shape or not (keys.is_contiguous() and values.is_contiguous()):
        raise ValueError(
            f"expected contiguous keys and values {shape}, given {tuple(keys.shape)} and {tuple(values.shape)}"
        )
    if len(slots):
        write_heads[shape[:2]](
            keys, values, key_cache, value_cache, slots,
            KV_HEADS=shape[1], SIZE=size, HEAD=triton.next_power_of_2(size), BLOCK=BLOCK_SIZE, num_warps=1,
        )  # fmt: skip


def _kv_heads(key_cache: torch.Tensor, value_cache: torch.Tensor, size: int) -> int:
    blocks, kv_heads = key_cache.shape[:2]
    fits = key_cache.shape[2:] == (size, BLOCK_SIZE) and value_cache.shape == (blocks, kv_heads, BLOCK_SIZE, size)
    if not (fits and key_cache.is_contiguous() and value_cache.is_contiguous()):
        raise ValueError(
            f"expected a contiguous cache of heads of {size} in blocks of {BLOCK_SIZE}, "
            f"given {tuple(key_cache.shape)} and {tuple(value_cache.shape)}"
        )
    return kv_heads


@triton.jit
def rotate_heads(
    projected: tl.tensor,
    cosines: tl.tensor,
    sines: tl.tensor,
    positions: tl.tensor,
    slots: tl.tensor,
    queries: tl.tensor,
    keys: tl.tensor,
    values: tl.tensor,
    HEADS: tl.constexpr,
    KV_HEADS: tl.constexpr,
    SIZE: tl.constexpr,
    HALF: tl.constexpr,
    BLOCK: tl.constexpr,
) -> None:
    """One head of one token: a query's, a key's or a value's."""
    token = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    x = tl.arange(0, HALF)
    inside = x < SIZE // 2
    source = projected + (token * (HEADS + 2 * KV_HEADS) + head) * SIZE + x
    near = tl.load(source, mask=inside, other=0.0)
    far = tl.load(source + SIZE // 2, mask=inside, other=0.0)
    slot = tl.load(slots + token)
    if head >= HEADS + KV_HEADS:
        place = (slot // BLOCK * KV_HEADS + head - HEADS - KV_HEADS) * BLOCK + slot % BLOCK
        out = values + place * SIZE + x
        tl.store(out, near.to(values.dtype.element_ty), mask=inside)
        tl.store(out + SIZE // 2, far.to(values.dtype.element_ty), mask=inside)
    else:
        angle = tl.load(positions + token).to(tl.int64) * (SIZE // 2) + x
        cosine = tl.load(cosines + angle, mask=inside, other=0.0)
        sine = tl.load(sines + angle, mask=inside, other=0.0)
        first = _product(near, cosine) - _product(far, sine)
        second = _product(far, cosine) + _product(near, sine)
        first = narrow(first, near.dtype)
        second = narrow(second, near.dtype)
        if head < HEADS:
            out = queries + (token * HEADS + head) * SIZE + x
            tl.store(out, first.to(queries.dtype.element_ty), mask=inside)
            tl.store(out + SIZE // 2, second.to(queries.dtype.element_ty), mask=inside)
        else:
            place = (slot // BLOCK * KV_HEADS + head - HEADS) * SIZE
            out = keys + (place + x) * BLOCK + slot % BLOCK
            tl.store(out, first.to(keys.dtype.element_ty), mask=inside)
            tl.store(out + SIZE // 2 * BLOCK, second.to(keys.dtype.element_ty), mask=inside)


@triton.jit
def _product(number: tl.tensor, factor: tl.tensor) -> tl.tensor:
    """Rounded to the kind of `number`."""
    return narrow(number.to(tl.float32) * factor, number.dtype).to(tl.float32)


@triton.jit
def write_heads(
    keys: tl.tensor,
    values: tl.tensor,
    key_cache: tl.tensor,
    value_cache: tl.tensor,
    slots: tl.tensor,
    KV_HEADS: tl.constexpr,
    SIZE: tl.constexpr,
    HEAD: tl.constexpr,
    BLOCK: tl.constexpr,
) -> None:
    """Key and value of one head of one token."""
    token = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    x = tl.arange(0, HEAD)
    inside = x < SIZE
    source = (token * KV_HEADS + head) * SIZE + x
    slot = tl.load(slots + token)
    first = (slot // BLOCK * KV_HEADS + head) * (SIZE * BLOCK)
    offset = slot % BLOCK
    key = tl.load(keys + source, mask=inside, other=0.0).to(key_cache.dtype.element_ty)
    value = tl.load(values + source, mask=inside, other=0.0).to(value_cache.dtype.element_ty)
    tl.store(key_cache + first + x * BLOCK + offset, key, mask=inside)
    tl.store(value_cache + first + offset * SIZE + x, value, mask=inside)


def _variants(name: str, pointer: str, size: int) -> tuple[Variant, Variant]:
    tables = {"cosines": "*fp32", "sines": "*fp32", "positions": "*i32", "slots": "*i64"}
    outputs = dict.fromkeys(("queries", "keys", "values"), pointer)
    caches = dict.fromkeys(("keys", "values", "key_cache", "value_cache"), pointer)
    rotating = {"HEADS": 32, "KV_HEADS": 8, "SIZE": size, "HALF": size // 2, "BLOCK": BLOCK_SIZE}
    writing = {"KV_HEADS": 8, "SIZE": size, "HEAD": size, "BLOCK": BLOCK_SIZE}
    return (
        Variant(
            name=f"rotate and write {size} {name}",
            kernel=rotate_heads,
            signature={"projected": pointer, **tables, **outputs, **dict.fromkeys(rotating, "constexpr")},
            constants=rotating,
            num_warps=1,
            hot=True,
        ),
        Variant(
            name=f"write cache {size} {name}",
            kernel=write_heads,
            signature={**caches, "slots": "*i64", **dict.fromkeys(writing, "constexpr")},
            constants=writing,
            num_warps=1,
            hot=True,
            options={},
        ),
    )


VARIANTS = (
    *_variants("bfloat16", "*bf16", 64),
    *_variants("bfloat16", "*bf16", 128),
    *_variants("float32", "*fp32", 64),
)
