"""Attention over a paged cache on GPUs: one compiled form for prefill, chunk, decode and verification.

Formula, arguments and reference: `outrider_kernels.paged_attention`, with tensors instead of arrays. Here queries and
cache share one dtype, which may also be bfloat16 or float16, and so has the output. Tokens are cut into *tiles*
(`query_tiles.py`), each of neighbours of one row.

One program takes a tile and one key-value head: LINES lines (the tile's tokens times the G query heads that share the
head, the rest of the lines idle) against KEYS positions at a time, from absolute position 0 in ascending order, never
split over keys. LINES and KEYS follow from H / KH, D and the dtype, never from the step.

Exactness
    A line meets the same tiles of keys in the same order in any company. Where it sees nothing of a tile (the tile came
    for a neighbour's sake), its sums are multiplied by 1 and grow by 0. A value that is not finite, seen by a neighbour
    only, must not reach it as 0 * NaN: such values are left out of the product and turn the lines that see them to NaN
    (the reference may answer infinity there).

Rounding
    Scores, weights' sum and output are float32. In half precision the weights are rounded to the cache's dtype before
    they meet the values, and the output once: two roundings of at most 2**-9 (bfloat16) or 2**-12 (float16) of the
    largest value seen. Products of float32 are IEEE's, not TF32.

Online softmax: Milakov and Gimelshein, arXiv 1805.02867. Tiles over queries: Dao, arXiv 2307.08691.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from outrider_kernels.paged_attention import BLOCK_SIZE
from outrider_kernels.triton_twins.numbers_triton import narrow, product
from outrider_kernels.triton_twins.query_tiles import QueryTiles, lines_of_tile
from outrider_kernels.triton_twins.registry import Variant

_MOST_KEYS = 64
_FEWEST_KEYS = 16
_BYTES_OF_KEYS = 16384
_SMALLEST_HEAD = 16


def paged_attention(
    queries: torch.Tensor,
    key_cache: torch.Tensor,
    value_cache: torch.Tensor,
    block_tables: torch.Tensor,
    token_rows: torch.Tensor,
    positions: torch.Tensor,
    tiles: QueryTiles,
    scale: float,
    window: int = 0,
) -> torch.Tensor:
    """Attend; `tiles` are `query_tiles` of `token_rows`, all else is `outrider_kernels.paged_attention`'s.

    Returns:
        [T, H, D], dtype of `queries`; 0 for tokens of no tile.

    Raises:
        ValueError: a dtype, shape or layout is not the contract's.
    """
    _check(queries, key_cache, value_cache)
    if not token_rows.shape == positions.shape == queries.shape[:1]:
        raise ValueError(
            f"expected {len(queries)} rows and positions, given {tuple(token_rows.shape)} and {tuple(positions.shape)}"
        )
    heads, size = queries.shape[1:]
    kv_heads = key_cache.shape[1]
    out = torch.zeros_like(queries)
    form = attention_form(heads // kv_heads, size, queries.dtype)
    if len(queries) == 0:
        return out
    attend_tile[(len(tiles.starts), kv_heads)](
        queries, key_cache, value_cache, block_tables, token_rows, positions, tiles.starts, tiles.ends, out,
        scale, block_tables.shape[1], WINDOW=window, KV_HEADS=kv_heads,
        num_warps=_warps(size, queries.dtype, window), **form,
    )  # fmt: skip
    return out


def attention_form(group: int, size: int, dtype: torch.dtype) -> dict[str, int]:
    """The constants that the kernel is compiled with for a model: the same in every step."""
    head = max(_SMALLEST_HEAD, int(triton.next_power_of_2(size)))
    keys = _BYTES_OF_KEYS // (head * dtype.itemsize)
    return {
        "GROUP": group,
        "SIZE": size,
        "HEAD": head,
        "LINES": lines_of_tile(group),
        "KEYS": min(_MOST_KEYS, max(_FEWEST_KEYS, keys)),
        "BLOCK": BLOCK_SIZE,
    }


def _warps(size: int, dtype: torch.dtype, window: int) -> int:
    # With 4 warps the mask of a window makes heads of 128 spill on an A100.
    return 4 if size <= (64 if window else 128) and dtype != torch.float32 else 8


def _check(queries: torch.Tensor, key_cache: torch.Tensor, value_cache: torch.Tensor) -> None:
    _, heads, size = queries.shape
    num_blocks, kv_heads = key_cache.shape[:2]
    for name, tensor, shape in (
        ("queries", queries, queries.shape),
        ("key_cache", key_cache, (num_blocks, kv_heads, size, BLOCK_SIZE)),
        ("value_cache", value_cache, (num_blocks, kv_heads, BLOCK_SIZE, size)),
    ):
        if tensor.shape != shape or tensor.dtype != queries.dtype or not tensor.is_contiguous():
            raise ValueError(
                f"expected {name} contiguous {queries.dtype} {tuple(shape)}, given {tensor.dtype} {tuple(tensor.shape)}"
            )
    if heads % kv_heads:
        raise ValueError(f"expected query heads in multiples of {kv_heads} key-value heads, given {heads}")


@triton.jit(do_not_specialize=["table_width"])
def attend_tile(
    queries: tl.tensor,
    key_cache: tl.tensor,
    value_cache: tl.tensor,
    block_tables: tl.tensor,
    token_rows: tl.tensor,
    positions: tl.tensor,
    tile_starts: tl.tensor,
    tile_ends: tl.tensor,
    out: tl.tensor,
    scale: tl.tensor,
    table_width: tl.tensor,
    WINDOW: tl.constexpr,
    KV_HEADS: tl.constexpr,
    GROUP: tl.constexpr,
    SIZE: tl.constexpr,
    HEAD: tl.constexpr,
    LINES: tl.constexpr,
    KEYS: tl.constexpr,
    BLOCK: tl.constexpr,
) -> None:
    """One tile of tokens, one key-value head: see the module."""
    kv_head = tl.program_id(1)
    start, end = tl.load(tile_starts + tl.program_id(0)), tl.load(tile_ends + tl.program_id(0))
    table = block_tables + tl.load(token_rows + start).to(tl.int64) * table_width

    line = tl.arange(0, LINES)
    token = start + line // GROUP
    used = (token < end) & (line < LINES // GROUP * GROUP)
    position = tl.load(positions + token, mask=used, other=-1)
    last = tl.max(position, 0)
    lowest = tl.maximum(position - WINDOW + 1, 0) if WINDOW else position * 0
    first = tl.min(tl.where(used, lowest, last), 0)
    # In this order of products: another spills registers on sm_90 where three query heads share a key-value head.
    head = token.to(tl.int64) * (KV_HEADS * GROUP) + kv_head * GROUP + line % GROUP
    query_at, query_mask = _places_of_heads(head, used, SIZE, HEAD)
    query = tl.load(queries + query_at, mask=query_mask, other=0.0)

    largest, total = tl.full([LINES], float("-inf"), tl.float32), tl.zeros([LINES], tl.float32)
    mixed = tl.zeros([LINES, HEAD], tl.float32)
    for base in range(first // KEYS * KEYS, last + 1, KEYS):
        base = tl.multiple_of(base, KEYS)
        key_position = base + tl.arange(0, KEYS)
        block, there = _blocks_between(table, base, first, last, KEYS, BLOCK)
        key, value = _load_blocks(key_cache, value_cache, block * KV_HEADS + kv_head, there, SIZE, HEAD, BLOCK)
        # Whatever lies in places of these blocks that no line sees must not meet a weight of 0.
        value = tl.where(((key_position >= first) & (key_position <= last))[:, None], value, 0.0)
        seen = (key_position[None, :] <= position[:, None]) & (key_position[None, :] >= lowest[:, None])
        scores = tl.where(seen, product(query, key) * scale, float("-inf"))
        risen = tl.maximum(largest, tl.max(scores, 1))
        # A line that has seen nothing so far would compute -inf - -inf.
        anchor = tl.where(risen == float("-inf"), 0.0, risen)
        weights = tl.exp(scores - anchor[:, None])
        shrunk = tl.exp(largest - anchor)
        total = total * shrunk + tl.sum(weights, 1)
        mixed = _mix_in(mixed * shrunk[:, None], weights, value, seen)
        largest = risen

    tl.store(out + query_at, narrow(mixed / tl.where(used, total, 1.0)[:, None], out.dtype.element_ty), mask=query_mask)


@triton.jit
def _places_of_heads(
    head: tl.tensor, used: tl.tensor, SIZE: tl.constexpr, HEAD: tl.constexpr
) -> tuple[tl.tensor, tl.tensor]:
    """Where the numbers [LINES, HEAD] of query heads lie, and which of them there are."""
    x = tl.arange(0, HEAD)
    return head[:, None] * SIZE + x[None, :], used[:, None] & (x < SIZE)[None, :]


@triton.jit
def _blocks_between(
    table: tl.tensor, base: tl.tensor, first: tl.tensor, last: tl.tensor, KEYS: tl.constexpr, BLOCK: tl.constexpr
) -> tuple[tl.tensor, tl.tensor]:
    """Blocks [KEYS / BLOCK] int64 of the positions from `base` on, and which of them hold one of `first` to `last`."""
    position = base + tl.arange(0, KEYS // BLOCK) * BLOCK
    there = (position + BLOCK > first) & (position <= last)
    return tl.load(table + position // BLOCK, mask=there, other=0).to(tl.int64), there


@triton.jit
def _mix_in(mixed: tl.tensor, weights: tl.tensor, value: tl.tensor, seen: tl.tensor) -> tl.tensor:
    """Add weighted values; lines that see a value that is not finite become NaN, the others do not meet it."""
    finite = tl.abs(value.to(tl.float32)) < float("inf")
    mixed += product(narrow(weights, value.dtype), tl.where(finite, value, 0.0).to(value.dtype))
    if tl.min(finite.to(tl.int32)) == 0:
        broken = product(seen.to(value.dtype), (finite == 0).to(value.dtype))
        mixed = tl.where(broken > 0, float("nan"), mixed)
    return mixed


@triton.jit
def _load_blocks(
    key_cache: tl.tensor,
    value_cache: tl.tensor,
    block: tl.tensor,
    there: tl.tensor,
    SIZE: tl.constexpr,
    HEAD: tl.constexpr,
    BLOCK: tl.constexpr,
) -> tuple[tl.tensor, tl.tensor]:
    """Keys [HEAD, KEYS] and values [KEYS, HEAD] of whole blocks of one head; 0 elsewhere.

    Loads of neighbours become one. `block` [KEYS / BLOCK] counts blocks of one head.
    """
    block_start = block * (SIZE * BLOCK)
    x = tl.arange(0, HEAD)
    offset = tl.arange(0, BLOCK)
    key_at = block_start[None, :, None] + x[:, None, None] * BLOCK + offset[None, None, :]
    key = tl.load(key_cache + key_at, mask=(x < SIZE)[:, None, None] & there[None, :, None], other=0.0)
    value_at = block_start[:, None, None] + offset[None, :, None] * SIZE + x[None, None, :]
    value = tl.load(value_cache + value_at, mask=there[:, None, None] & (x < SIZE)[None, None, :], other=0.0)
    keys: tl.constexpr = there.shape[0] * BLOCK
    return tl.reshape(key, [HEAD, keys]), tl.reshape(value, [keys, HEAD])


def _variant(name: str, dtype: torch.dtype, pointer: str, group: int, size: int, window: int = 0) -> Variant:
    tensors = {
        **dict.fromkeys(("queries", "key_cache", "value_cache"), pointer),
        **dict.fromkeys(("block_tables", "token_rows", "positions", "tile_starts", "tile_ends"), "*i32"),
        "out": pointer,
    }
    numbers = {"scale": "fp32", "table_width": "i32"}
    form = {"WINDOW": window, "KV_HEADS": 8, **attention_form(group, size, dtype)}
    return Variant(
        name=f"paged attention {group} x {size} {name}{' window' if window else ''}",
        kernel=attend_tile,
        signature={**tensors, **numbers, **dict.fromkeys(form, "constexpr")},
        constants=form,
        num_warps=_warps(size, dtype, window),
        hot=dtype != torch.float32,  # GPUs have no tensor cores for exact float32: slow in any case
        options={},
    )


VARIANTS = (
    _variant("bfloat16", torch.bfloat16, "*bf16", 3, 64),
    _variant("bfloat16", torch.bfloat16, "*bf16", 4, 128),
    _variant("bfloat16", torch.bfloat16, "*bf16", 4, 128, window=4096),
    _variant("bfloat16", torch.bfloat16, "*bf16", 8, 128),
    _variant("bfloat16", torch.bfloat16, "*bf16", 4, 256),
    _variant("float16", torch.float16, "*fp16", 8, 128),
    _variant("float32", torch.float32, "*fp32", 4, 128),
)
