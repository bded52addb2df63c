"""Attention over a paged cache: right within rounding, and the same bits for a query however it is computed."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest

from outrider_kernels import paged_attention_numba
from outrider_kernels.key_value_cache_numba import (
    KeyValueCache,
    new_cache,
    plainly_ordered_cache,
    tile_ordered_cache,
    write_cache,
)
from outrider_kernels.paged_attention import BLOCK_SIZE, paged_attention_reference
from outrider_kernels.paged_attention_numba import paged_attention
from outrider_kernels.tile_dot_numba import has_tile_products


class Shape(NamedTuple):
    heads: int
    kv_heads: int
    size: int
    window: int = 0
    kind: type[np.generic] = np.float32
    """Of the cache: float32, or uint16 for the bits of bfloat16."""
    for_tiles: bool = False
    """Order of the cache's memory."""


SHAPES = [
    Shape(9, 3, 64),  # SmolLM2
    Shape(4, 4, 16),  # a key-value head for each query head
    Shape(8, 2, 128),
    Shape(4, 1, 80),  # not a power of two
    Shape(3, 3, 100),  # neither full registers of values nor full steps of the scores
    Shape(2, 1, 7),  # less than one step
    Shape(9, 3, 64, window=40),  # no multiple of a block
    Shape(4, 2, 32, window=1),  # only itself
    Shape(4, 2, 32, window=16),
    Shape(2, 1, 256, window=5000),  # longer than the row
    Shape(9, 3, 64, kind=np.uint16),
    Shape(3, 3, 100, window=40, kind=np.uint16),
]
TILE_SHAPES = [
    Shape(9, 3, 64, kind=np.uint16, for_tiles=True),  # SmolLM2
    Shape(8, 2, 128, kind=np.uint16, for_tiles=True),  # a head larger than its sums' registers
    Shape(3, 3, 96, window=40, kind=np.uint16, for_tiles=True),  # whole registers and half of them
    Shape(4, 2, 32, window=1, kind=np.uint16, for_tiles=True),  # only itself
    Shape(17, 1, 32, window=16, kind=np.uint16, for_tiles=True),  # one line in the second group
]
if has_tile_products():
    SHAPES += TILE_SHAPES
LENGTHS = [111, 1, 48, 17]  # keys of each row: ends within a block, a lone token, whole blocks, one past a block


class Cached:
    """Rows whose keys and values are in a shuffled paged cache; unused places hold NaN."""

    def __init__(self, shape: Shape, lengths: list[int] = LENGTHS) -> None:
        source = np.random.default_rng(shape.size)
        self.shape, self.lengths = shape, lengths
        width = -(-max(lengths) // BLOCK_SIZE)
        num_blocks = len(lengths) * width + 2
        self.tables = source.permutation(num_blocks)[: len(lengths) * width].reshape(-1, width).astype(np.int32)
        ordered_cache = tile_ordered_cache if shape.for_tiles else plainly_ordered_cache
        self.cache = ordered_cache(num_blocks, shape.kv_heads, shape.size, shape.kind)
        for array in self.cache:
            array.fill(np.nan if shape.kind is np.float32 else 0x7FC0)
        self.queries = []
        for row, length in enumerate(lengths):
            positions = np.arange(length)
            slots = self.tables[row, positions // BLOCK_SIZE].astype(np.int64) * BLOCK_SIZE + positions % BLOCK_SIZE
            keys = source.standard_normal((length, shape.kv_heads, shape.size), np.float32)
            write_cache(keys * 2, keys[::-1] + 1, self.cache, slots)
            queries = source.standard_normal((length, shape.heads, shape.size), np.float32) * 2
            if shape.for_tiles:  # as a model in bfloat16 has rounded them
                queries = (queries.view(np.uint32) & 0xFFFF0000).view(np.float32)
            self.queries.append(queries)

    def arguments(self, tokens: list[tuple[int, int]]) -> tuple:
        """Arguments for (row, position) tokens."""
        queries = np.array([self.queries[row][position] for row, position in tokens])
        rows, positions = np.array(tokens, np.int32).T.copy()
        return queries, self.cache, self.tables, rows, positions, self.shape.size**-0.5, self.shape.window

    def reference(self, tokens: list[tuple[int, int]]) -> np.ndarray:
        """What they should say."""
        queries, cache, *others = self.arguments(tokens)
        return paged_attention_reference(queries, *map(np.ascontiguousarray, cache), *others)

    def attend(self, tokens: list[tuple[int, int]]) -> dict[tuple[int, int], bytes]:
        """Bits of each token's output."""
        out = paged_attention(*self.arguments(tokens))
        assert np.isfinite(out).all()
        return {token: bits.tobytes() for token, bits in zip(tokens, out, strict=True)}

    @property
    def all_tokens(self) -> list[tuple[int, int]]:
        """Row after row, position after position."""
        return [(row, position) for row, length in enumerate(self.lengths) for position in range(length)]

    def one_by_one(self) -> dict[tuple[int, int], bytes]:
        """Bits of every token, each in a call of its own."""
        return {token: self.attend([token])[token] for token in self.all_tokens}


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_attention_equals_the_reference_within_rounding(shape: Shape) -> None:
    cached = Cached(shape)
    found = paged_attention(*cached.arguments(cached.all_tokens))
    np.testing.assert_allclose(found, cached.reference(cached.all_tokens), **tolerance(shape))


def tolerance(shape: Shape) -> dict[str, float]:
    """For tiles a weight is rounded to bfloat16: by up to 2**-9 of itself."""
    return {"atol": 4e-3, "rtol": 2e-3} if shape.for_tiles else {"atol": 5e-6, "rtol": 1e-5}


@pytest.mark.parametrize("shape", [shape for shape in SHAPES if shape.for_tiles], ids=str)
def test_segments_of_long_rows_are_joined_without_a_trace(shape: Shape) -> None:
    cached = Cached(shape, [531, 256, 257])
    tokens = [(0, position) for position in (*range(250, 262), *range(505, 531))] + [(1, 255), (2, 255), (2, 256)]
    found = paged_attention(*cached.arguments(tokens))
    np.testing.assert_allclose(found, cached.reference(tokens), **tolerance(shape))
    assert cached.attend(tokens) == {token: cached.attend([token])[token] for token in tokens}


@pytest.mark.parametrize("shape", [shape for shape in SHAPES if shape.for_tiles], ids=str)
def test_rounding_touches_weights_alone(shape: Shape) -> None:
    cached = Cached(shape, [270, 1, 17])
    queries, cache, *tables = cached.arguments(cached.all_tokens)[:5]
    expected = paged_attention_reference(queries, *map(np.ascontiguousarray, cache), *tables, 0.0, shape.window)
    found = paged_attention(queries, cache, *tables, 0.0, shape.window)  # weights of 1
    np.testing.assert_allclose(found, expected, atol=2e-6, rtol=2e-6)


@pytest.mark.skipif(not has_tile_products(), reason="no tile registers here")
@pytest.mark.parametrize("heads", [1, 3, 4, 5, 8, 9, 16])
def test_how_many_lines_go_together_does_not_show_in_their_bits(heads: int) -> None:
    cached = Cached(Shape(17, 1, 64, window=290, kind=np.uint16, for_tiles=True), [300])
    queries, *others = cached.arguments([(0, 299)])
    some = paged_attention(np.ascontiguousarray(queries[:, :heads]), *others)
    assert some.tobytes() == paged_attention(queries, *others)[:, :heads].tobytes()


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_query_gives_the_same_bits_alone_among_neighbours_and_in_any_chunk(shape: Shape) -> None:
    cached = Cached(shape)
    alone = cached.one_by_one()
    assert cached.attend(cached.all_tokens) == alone
    for chunk in (2, 7, 16, 33):
        tokens = cached.all_tokens
        for start in range(0, len(tokens), chunk):
            part = tokens[start : start + chunk]
            assert cached.attend(part) == {token: alone[token] for token in part}
    shuffled = [cached.all_tokens[at] for at in np.random.default_rng(1).permutation(len(alone))]
    assert cached.attend(shuffled) == alone


@pytest.mark.parametrize("shape", SHAPES[:7], ids=str)
def test_verification_and_mixed_steps_give_the_same_bits_as_decoding(shape: Shape) -> None:
    cached = Cached(shape)
    alone = cached.one_by_one()
    verifying = [(0, position) for position in range(100, 109)]
    decoding, prefill = [(1, 0), (2, 47)], [(3, position) for position in range(17)]
    mixed = [*verifying, *decoding, *prefill]
    assert cached.attend(mixed) == {token: alone[token] for token in mixed}


@pytest.mark.parametrize("shape", SHAPES[:7], ids=str)
def test_the_number_of_threads_changes_no_bit(set_numba_threads, shape: Shape) -> None:
    cached = Cached(shape)
    outputs = []
    for threads in (1, 2):
        set_numba_threads(threads)
        outputs.append(cached.attend(cached.all_tokens))
    assert outputs[0] == outputs[1]


@pytest.mark.parametrize("tile", [1, 3, 16])
@pytest.mark.parametrize("shape", [shape for shape in SHAPES if shape[:3] == (9, 3, 64)], ids=str)
def test_the_tile_changes_no_bit(tile: int, shape: Shape, monkeypatch: pytest.MonkeyPatch) -> None:
    cached = Cached(shape)
    alone = cached.one_by_one()
    monkeypatch.setattr(paged_attention_numba, "_LARGEST_TILE", tile)
    assert cached.attend(cached.all_tokens) == alone


def test_a_bfloat16_cache_gives_the_bits_of_a_float32_one_with_the_same_numbers() -> None:
    narrow = Cached(Shape(9, 3, 64, kind=np.uint16))
    wide = Cached(Shape(9, 3, 64))
    wide.cache = KeyValueCache(*((array.astype(np.uint32) << 16).view(np.float32) for array in narrow.cache))
    assert narrow.attend(narrow.all_tokens) == wide.attend(wide.all_tokens)
    assert narrow.cache.keys.nbytes == wide.cache.keys.nbytes / 2


@pytest.mark.skipif(not has_tile_products(), reason="this processor has no AMX_BF16")
def test_a_new_cache_is_ordered_for_tiles_where_they_take_it() -> None:
    assert new_cache(1, 2, 64, np.uint16).is_for_tiles
    assert not new_cache(1, 2, 64, np.float32).is_for_tiles
    assert not new_cache(1, 2, 80, np.uint16).is_for_tiles


def test_blocks_may_lie_anywhere_and_be_shared() -> None:
    cached = Cached(SHAPES[0])
    moved = Cached(SHAPES[0])
    order = np.random.default_rng(9).permutation(len(cached.cache.keys))
    moved.cache = KeyValueCache(*(array[order].copy() for array in cached.cache))
    moved.tables = np.argsort(order)[cached.tables].astype(np.int32)
    moved.queries = cached.queries
    assert moved.attend(moved.all_tokens) == cached.attend(cached.all_tokens)


def test_scores_far_apart_and_far_from_zero_are_handled() -> None:
    cached = Cached(Shape(2, 1, 16))
    for scale in (0.0, 40.0, -40.0):
        queries, cache, *tables = cached.arguments(cached.all_tokens)[:5]
        expected = paged_attention_reference(queries, *cache, *tables, scale)
        np.testing.assert_allclose(paged_attention(queries, cache, *tables, scale), expected, atol=5e-4, rtol=1e-4)


@pytest.mark.parametrize("where", ["query", "key", "value"])
@pytest.mark.parametrize("shape", [shape for shape in SHAPES if not shape.window], ids=str)
def test_nan_that_a_query_sees_shows_and_stays_with_its_row(where: str, shape: Shape) -> None:
    cached = Cached(shape)
    block, offset = cached.tables[0, 1], 3
    nan = np.nan if shape.kind is np.float32 else 0x7FC0
    if where == "query":
        cached.queries[0][19:, shape.heads - 1, 5] = np.nan
    elif where == "key":
        cached.cache.keys[block, 0, 5, offset] = nan
    else:
        cached.cache.values[block, 0, offset, 5] = nan
    out = paged_attention(*cached.arguments(cached.all_tokens))
    broken = [token for token, row in zip(cached.all_tokens, out, strict=True) if np.isnan(row).any()]
    assert broken == [(0, position) for position in range(BLOCK_SIZE + offset, LENGTHS[0])]


@pytest.mark.parametrize("ordered_cache", [plainly_ordered_cache, tile_ordered_cache])
def test_written_keys_and_values_lie_where_the_contract_says(ordered_cache: Callable[..., KeyValueCache]) -> None:
    keys = np.arange(2 * 3 * 5, dtype=np.float32).reshape(2, 3, 5)
    cache = ordered_cache(4, 3, 5, np.float32)
    write_cache(keys, -keys, cache, np.array([3 * BLOCK_SIZE + 7, 2], np.int64))
    assert np.array_equal(cache.keys[3, :, :, 7], keys[0]) and np.array_equal(cache.keys[0, :, :, 2], keys[1])
    assert np.array_equal(cache.values[3, :, 7], -keys[0]) and np.array_equal(cache.values[0, :, 2], -keys[1])
    assert np.count_nonzero(cache.keys) == np.count_nonzero(cache.values) == np.count_nonzero(keys)


def test_every_call_runs_the_same_compiled_kernel() -> None:
    cached = Cached(SHAPES[0])
    queries, cache, tables, rows, positions, scale, window = cached.arguments([(0, 4), (1, 0)])
    expected = paged_attention(queries, cache, tables, rows, positions, scale, window)
    before = paged_attention_numba._attend.signatures[:]
    readonly = queries.copy()
    readonly.flags.writeable = False
    strided = np.repeat(queries, 2, axis=2)[:, :, ::2]
    for form in (readonly, strided, queries.astype(np.float64)):
        given = paged_attention(form, cache, tables.astype(np.int64), rows[:], positions, scale, window)
        assert np.array_equal(given, expected)
    assert paged_attention_numba._attend.signatures == before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"queries": np.zeros((2, 9, 32), np.float32)}, r"contiguous writeable keys float32 \(\d+, 3, 32, 16\)"),
        ({"queries": np.zeros((2, 8, 64), np.float32)}, "multiples of 3 key-value heads, given 8"),
        ({"keys": np.zeros((30, 3, 64, 16))}, "given float64"),
        ({"values": np.zeros((29, 3, 64, 16), np.float32)}, "writeable values"),
        ({"values": np.zeros((30, 3, 64), np.float32)}, "writeable values"),
        ({"keys": np.zeros((14, 3, 64, 16), np.uint16)}, "writeable values uint16"),
        ({"keys": np.zeros((30, 3, 16, 64), np.float32).swapaxes(2, 3)}, "writeable values"),  # of two orders
        ({"positions": np.zeros(3, np.int32)}, "expected 2 rows and positions"),
    ],
)
def test_arrays_of_another_shape_or_dtype_are_refused(change: dict[str, np.ndarray], message: str) -> None:
    names = ("queries", "cache", "block_tables", "token_rows", "positions", "scale", "window")
    arguments = dict(zip(names, Cached(SHAPES[0]).arguments([(0, 4), (1, 0)]), strict=True))
    for name, array in change.items():
        if name in KeyValueCache._fields:
            arguments["cache"] = arguments["cache"]._replace(**{name: array})
        else:
            arguments[name] = array
    with pytest.raises(ValueError, match=message):
        paged_attention(**arguments)


@pytest.mark.parametrize(("size", "kind"), [(64, np.float32), (80, np.uint16)])
def test_a_cache_in_the_order_for_tiles_is_refused_where_tiles_do_not_take_it(size: int, kind: type) -> None:
    cache, one = tile_ordered_cache(1, 1, size, kind), np.zeros(1, np.int32)
    with pytest.raises(ValueError, match=f"no tile registers here for a cache of .* with heads of {size}"):
        paged_attention(np.zeros((1, 1, size), np.float32), cache, np.zeros((1, 1), np.int32), one, one, 1.0)


def test_keys_and_values_of_another_shape_are_refused() -> None:
    cached = Cached(SHAPES[0])
    keys = np.zeros((2, 3, 64), np.float32)
    with pytest.raises(ValueError, match=r"expected keys and values \(3, 3, 64\), given \(2, 3, 64\)"):
        write_cache(keys, keys, cached.cache, np.zeros(3, np.int64))
