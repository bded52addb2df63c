"""Paged attention in Triton: right within rounding, and the same bits for a query however it is computed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
import torch

from outrider_kernels.paged_attention import BLOCK_SIZE, paged_attention_reference
from outrider_kernels.triton_twins.paged_attention_triton import paged_attention
from outrider_kernels.triton_twins.query_tiles import query_tiles
from outrider_kernels.triton_twins.rotary_triton import write_cache


class Shape(NamedTuple):
    heads: int
    kv_heads: int
    size: int
    window: int = 0


SHAPES = [
    Shape(9, 3, 64),  # SmolLM2: lines of a tile stay idle
    Shape(4, 4, 16),  # a key-value head for each query head, the smallest tile of a product
    Shape(4, 1, 80),  # not a power of two
    Shape(2, 1, 7),  # less than the smallest tile
    Shape(8, 2, 128, window=40),  # no multiple of a block
    Shape(4, 2, 32, window=1),  # only itself
    Shape(2, 1, 256, window=5000),  # longer than the row, and fewer keys at a time
    Shape(40, 1, 16),  # more query heads than a tile usually has lines
]
LENGTHS = [111, 1, 64, 17]  # ends within a block, a lone token, a whole tile of keys, one past a block
Token = tuple[int, int]


class Cached:
    """Rows whose keys and values are in a shuffled paged cache; unused places hold NaN."""

    def __init__(self, shape: Shape, dtype: torch.dtype = torch.float32) -> None:
        generator = torch.Generator().manual_seed(shape.size)
        self.shape, width = shape, -(-max(LENGTHS) // BLOCK_SIZE)
        num_blocks = len(LENGTHS) * width + 2
        order = torch.randperm(num_blocks, generator=generator)[: len(LENGTHS) * width]
        self.tables = order.view(-1, width).int()
        self.keys = torch.full((num_blocks, shape.kv_heads, shape.size, BLOCK_SIZE), torch.nan, dtype=dtype)
        self.values = torch.full((num_blocks, shape.kv_heads, BLOCK_SIZE, shape.size), torch.nan, dtype=dtype)
        self.queries = []
        for row, length in enumerate(LENGTHS):
            positions = torch.arange(length)
            slots = self.tables[row, positions // BLOCK_SIZE].long() * BLOCK_SIZE + positions % BLOCK_SIZE
            keys, values = torch.randn(2, length, shape.kv_heads, shape.size, generator=generator).to(dtype)
            write_cache(keys * 2, values + 1, self.keys, self.values, slots)
            self.queries.append((torch.randn(length, shape.heads, shape.size, generator=generator) * 2).to(dtype))

    def arguments(self, tokens: list[Token]) -> tuple[torch.Tensor, ...]:
        """Queries, caches, tables, rows and positions of (row, position) tokens."""
        queries = torch.stack([self.queries[row][position] for row, position in tokens])
        rows, positions = torch.tensor(tokens, dtype=torch.int32).T.contiguous()
        return queries, self.keys, self.values, self.tables, rows, positions

    def attend(self, tokens: list[Token]) -> torch.Tensor:
        """Output of each token."""
        arguments = self.arguments(tokens)
        tiles = query_tiles(arguments[4].numpy(), self.shape.heads // self.shape.kv_heads, "cpu")
        return paged_attention(*arguments, tiles, self.shape.size**-0.5, self.shape.window)

    def expected(self, tokens: list[Token]) -> np.ndarray:
        """What the reference says, of the same rounded inputs."""
        queries, keys, values, *tables = self.arguments(tokens)
        arrays = [tensor.float().numpy() for tensor in (queries, keys, values)]
        indices = [table.numpy() for table in tables]
        return paged_attention_reference(*arrays, *indices, self.shape.size**-0.5, self.shape.window)

    def bits(self, tokens: list[Token]) -> dict[Token, bytes]:
        """Bits of each token's output."""
        return {token: out.numpy().tobytes() for token, out in zip(tokens, self.attend(tokens), strict=True)}


ALL_TOKENS = [(row, position) for row, length in enumerate(LENGTHS) for position in range(length)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_attention_equals_the_reference_within_rounding(shape: Shape) -> None:
    cached = Cached(shape)
    # Scores reach 30, where float32 is 2e-6 apart: so much do weights change, and values by some of them.
    np.testing.assert_allclose(cached.attend(ALL_TOKENS).numpy(), cached.expected(ALL_TOKENS), atol=2e-5, rtol=1e-5)


@pytest.mark.parametrize(("dtype", "unit"), [(torch.bfloat16, 2.0**-8), (torch.float16, 2.0**-11)], ids=str)
def test_half_precision_rounds_weights_and_output_once_each(dtype: torch.dtype, unit: float) -> None:
    cached = Cached(SHAPES[0], dtype)
    found, expected = cached.attend(ALL_TOKENS), cached.expected(ALL_TOKENS)
    assert found.dtype == dtype
    largest = cached.values[~cached.values.isnan()].abs().max().item()
    # Half a unit for each of the two roundings; of the weights in relation to the largest value that they may meet.
    assert np.abs(found.double().numpy() - expected).max() < unit * largest
    assert np.abs(found.double().numpy() - expected).mean() < unit / 2


@pytest.mark.parametrize("shape", [SHAPES[0], *SHAPES[2:6]], ids=str)
def test_a_query_gives_the_same_bits_alone_in_chunks_and_in_a_mixed_step(shape: Shape) -> None:
    cached = Cached(shape)
    whole = cached.bits(ALL_TOKENS)
    alone = [(0, 110), (0, 63), (0, 64), (0, 5), (1, 0), (2, 47), (3, 16)]
    assert {token: cached.bits([token])[token] for token in alone} == {token: whole[token] for token in alone}
    for start in range(0, len(ALL_TOKENS), 45):
        chunk = ALL_TOKENS[start : start + 45]
        assert cached.bits(chunk) == {token: whole[token] for token in chunk}
    verifying = [(0, position) for position in range(100, 108)]
    mixed = [(3, 16), *verifying, (1, 0), (2, 47), (0, 3), *((2, position) for position in range(20))]
    assert cached.bits(mixed) == {token: whole[token] for token in mixed}


# The interpreter computes with numpy, which warns of what this test is about.
@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:All-NaN slice encountered:RuntimeWarning")
@pytest.mark.parametrize("where", ["query", "key", "value"])
@pytest.mark.parametrize("broken", [torch.nan, torch.inf])
def test_what_is_not_finite_shows_where_it_is_seen_and_nowhere_else(where: str, broken: float) -> None:
    cached = Cached(Shape(4, 2, 32))
    whole = cached.bits(ALL_TOKENS)
    block, offset = cached.tables[0, 1], 3
    if where == "query":
        cached.queries[0][19:, 1, 5] = broken
    elif where == "key":
        cached.keys[block, 0, 5, offset] = broken if np.isnan(broken) else torch.nan
    else:
        cached.values[block, 0, offset, 5] = broken
    seeing = [(0, position) for position in range(BLOCK_SIZE + offset, LENGTHS[0])]
    out = cached.attend(ALL_TOKENS)
    assert [token for token, row in zip(ALL_TOKENS, out, strict=True) if row.isnan().any()] == seeing
    blind = [token for token in ALL_TOKENS if token not in seeing]
    assert [row.numpy().tobytes() for token, row in zip(ALL_TOKENS, out, strict=True) if token in blind] == [
        whole[token] for token in blind
    ]


def test_tiles_are_of_one_row_and_cover_every_token_once() -> None:
    rows = np.array([4] * 23 + [1] + [0] * 10 + [4] * 2, np.int32)
    tiles = query_tiles(rows, 3, "cpu")
    assert tiles.starts.tolist() == [0, 10, 20, 23, 24, 34]
    assert tiles.ends.tolist() == [10, 20, 23, 24, 34, 36]


def test_a_step_without_tokens_gives_nothing() -> None:
    none = torch.zeros(0, dtype=torch.int32)
    cached = Cached(SHAPES[0])
    tiles = query_tiles(none.numpy(), 3, "cpu")
    assert paged_attention(
        torch.zeros(0, 9, 64), cached.keys, cached.values, cached.tables, none, none, tiles, 1.0
    ).shape == (0, 9, 64)  # fmt: skip


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"queries": torch.zeros(2, 9, 32)}, r"expected key_cache .*float32 \(\d+, 3, 32, 16\)"),
        ({"queries": torch.zeros(2, 8, 64)}, "multiples of 3 key-value heads, given 8"),
        ({"key_cache": torch.zeros(30, 3, 64, 16, dtype=torch.float64)}, "given torch.float64"),
        ({"value_cache": torch.zeros(29, 3, 64, 16)}, "expected value_cache"),
        ({"positions": torch.zeros(3, dtype=torch.int32)}, "expected 2 rows and positions"),
    ],
)
def test_tensors_of_another_shape_or_dtype_are_refused(change: dict[str, torch.Tensor], message: str) -> None:
    names = ("queries", "key_cache", "value_cache", "block_tables", "token_rows", "positions")
    arguments = {**dict(zip(names, Cached(SHAPES[0]).arguments([(0, 4), (1, 0)]), strict=True)), **change}
    with pytest.raises(ValueError, match=message):
        paged_attention(**arguments, tiles=query_tiles(np.array([0, 1], np.int32), 3, "cpu"), scale=1.0)
