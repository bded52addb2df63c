"""Where keys and values lie in a paged cache, and which arrays attention takes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from outrider_doubles.cached_rows import SHAPES, Cached

from outrider_kernels import paged_attention_numba
from outrider_kernels.key_value_cache_numba import (
    KeyValueCache,
    new_cache,
    plainly_ordered_cache,
    tile_ordered_cache,
    write_cache,
)
from outrider_kernels.paged_attention import BLOCK_SIZE
from outrider_kernels.paged_attention_numba import paged_attention
from outrider_kernels.tile_dot_numba import has_tile_products


@pytest.mark.skipif(not has_tile_products(), reason="this processor has no AMX_BF16")
def test_a_new_cache_is_ordered_for_tiles_where_they_take_it() -> None:
    assert new_cache(1, 2, 64, np.uint16).is_for_tiles
    assert not new_cache(1, 2, 64, np.float32).is_for_tiles
    assert not new_cache(1, 2, 80, np.uint16).is_for_tiles


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
    arguments = Cached(SHAPES[0]).arguments([(0, 4), (1, 0)])._asdict()
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
