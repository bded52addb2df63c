"""Attention over a paged cache: right within rounding, and the same bits for a query however it is computed."""

from __future__ import annotations

import numpy as np
import pytest
from outrider_doubles.cached_rows import LENGTHS, SHAPES, Cached, Shape

from outrider_kernels import paged_attention_numba
from outrider_kernels.key_value_cache_numba import KeyValueCache
from outrider_kernels.paged_attention import BLOCK_SIZE, paged_attention_reference
from outrider_kernels.paged_attention_numba import paged_attention
from outrider_kernels.tile_dot_numba import has_tile_products


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
