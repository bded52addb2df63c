"""Norms, gated unit and rotary positions in Triton say what the CPU's kernels say, in any company."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from outrider_doubles.closeness import close

from outrider_kernels import gated_unit_numba, rms_norm_numba, rotary_numba
from outrider_kernels.number_formats_numba import numbers_of
from outrider_kernels.paged_attention import BLOCK_SIZE
from outrider_kernels.triton_twins.gated_unit_triton import silu_and_multiply
from outrider_kernels.triton_twins.rms_norm_triton import WIDEST_ROW, add_rms_norm, rms_norm, rms_norm_heads
from outrider_kernels.triton_twins.rotary_triton import RotaryOutputs, RotaryTables, rotate_and_write, write_cache

DTYPES = [torch.float32, torch.bfloat16]
EPSILON = 1e-5
WIDTHS = [576, 4096, 7]  # SmolLM2, a whole tile, less than a tile


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("width", WIDTHS)
def test_norms_are_those_of_the_cpu_and_of_the_row_alone(width: int, dtype: torch.dtype) -> None:
    torch.manual_seed(width)
    hidden, delta, weight = (torch.randn(size).to(dtype) for size in ((17, width), (17, width), (width,)))
    summed, out, expected_sum, expected = hidden.clone(), hidden.clone(), hidden.clone(), hidden.clone()
    add_rms_norm(summed, delta, weight, EPSILON, out)
    arguments = (numbers_of(delta), numbers_of(weight), EPSILON)
    rms_norm_numba.add_rms_norm(numbers_of(expected_sum), *arguments, numbers_of(expected))
    assert torch.equal(summed, expected_sum)
    close(out, expected)
    for count in range(1, 18):
        some = torch.empty_like(hidden[:count])
        rms_norm(summed[17 - count :], weight, EPSILON, some)
        assert torch.equal(some, out[17 - count :])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_only_the_named_heads_are_normed(dtype: torch.dtype) -> None:
    projected, weight = torch.randn(3, 6 * 32).to(dtype), torch.randn(32).to(dtype)
    out, expected = projected.clone(), projected.clone()
    rms_norm_heads(out, slice(1, 4), weight, EPSILON)
    rms_norm_numba.rms_norm_heads(numbers_of(expected), slice(1, 4), numbers_of(weight), EPSILON)
    close(out, expected)
    assert torch.equal(out[:, :32], projected[:, :32]) and torch.equal(out[:, 128:], projected[:, 128:])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("size", [1536, 50])
def test_the_gated_unit_is_that_of_the_cpu_and_of_the_row_alone(size: int, dtype: torch.dtype) -> None:
    gate_up = (torch.randn(17, 2 * size) * 5).to(dtype)
    gate_up[0, :6] = torch.tensor([0.0, -0.0, 80.0, -80.0, 1e-30, torch.nan])
    out, expected = torch.empty(17, size, dtype=dtype), torch.empty(17, size, dtype=dtype)
    silu_and_multiply(gate_up, out)
    gated_unit_numba.silu_and_multiply(numbers_of(gate_up), numbers_of(expected))
    assert out[0, 5].isnan() and expected[0, 5].isnan()
    close(out[1:], expected[1:])
    close(out[0, :5], expected[0, :5])
    alone = torch.empty(1, size, dtype=dtype)
    silu_and_multiply(gate_up[9:10], alone)
    assert torch.equal(alone, out[9:10])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("size", [64, 12])
def test_rotated_heads_and_the_written_cache_have_the_bits_of_the_cpu(size: int, dtype: torch.dtype) -> None:
    tokens, heads, kv_heads, blocks = 7, 4, 2, 6
    projected = torch.randn(tokens, (heads + 2 * kv_heads) * size).to(dtype)
    angles = torch.outer(torch.arange(200.0), torch.logspace(0, -3, size // 2))
    tables = RotaryTables(angles.cos().to(dtype).float(), angles.sin().to(dtype).float())
    positions = torch.randint(0, 200, (tokens,), dtype=torch.int32)
    slots = torch.randperm(blocks * BLOCK_SIZE)[:tokens]
    shapes = ((tokens, heads, size), (blocks, kv_heads, size, BLOCK_SIZE), (blocks, kv_heads, BLOCK_SIZE, size))
    outputs = RotaryOutputs(*(torch.full(shape, -1.0) for shape in shapes))
    expected = rotary_numba.RotaryOutputs(*(np.full(shape, -1, np.float32) for shape in shapes))
    rotate_and_write(projected, tables, positions, slots, outputs)
    numba_tables = rotary_numba.RotaryTables(*(table.numpy() for table in tables))
    rotary_numba.rotate_and_write(numbers_of(projected), numba_tables, positions.numpy(), slots.numpy(), expected)
    for found, wanted in zip(outputs, expected, strict=True):
        assert np.array_equal(found.numpy(), wanted)


def test_written_keys_and_values_lie_where_the_contract_says() -> None:
    keys = torch.arange(1.0, 31.0).view(2, 3, 5).bfloat16()
    key_cache, value_cache = torch.zeros(4, 3, 5, BLOCK_SIZE).bfloat16(), torch.zeros(4, 3, BLOCK_SIZE, 5).bfloat16()
    write_cache(keys, -keys, key_cache, value_cache, torch.tensor([3 * BLOCK_SIZE + 7, 2]))
    assert torch.equal(key_cache[3, :, :, 7], keys[0]) and torch.equal(key_cache[0, :, :, 2], keys[1])
    assert torch.equal(value_cache[3, :, 7], -keys[0]) and torch.equal(value_cache[0, :, 2], -keys[1])
    assert key_cache.count_nonzero() == value_cache.count_nonzero() == keys.numel()


def test_shapes_that_do_not_fit_are_refused() -> None:
    row = torch.zeros(2, 8)
    with pytest.raises(ValueError, match=r"expected a weight of 8 numbers, 32768 at most, given \(7,\)"):
        rms_norm(row, torch.zeros(7), EPSILON, row)
    with pytest.raises(ValueError, match="32768 at most"):
        rms_norm(torch.zeros(1, WIDEST_ROW + 1), torch.zeros(WIDEST_ROW + 1), EPSILON, torch.zeros(1, WIDEST_ROW + 1))
    with pytest.raises(ValueError, match=r"given torch.bfloat16 \(2, 8\)"):
        add_rms_norm(row, row.bfloat16(), torch.zeros(8), EPSILON, row)
    with pytest.raises(ValueError, match=r"expected gate_up torch.float32 \(2, 16\), given torch.float32 \(2, 8\)"):
        silu_and_multiply(row, row)
    cache = (torch.zeros(1, 1, 8, BLOCK_SIZE), torch.zeros(1, 1, BLOCK_SIZE, 8))
    with pytest.raises(ValueError, match=r"expected contiguous projected \(2, 24\), given \(2, 8\)"):
        outputs = RotaryOutputs(torch.zeros(2, 1, 8), *cache)
        rotate_and_write(row, RotaryTables(row, row), torch.zeros(2).int(), torch.arange(2), outputs)
    with pytest.raises(ValueError, match="expected contiguous keys and values"):
        write_cache(row.view(2, 1, 8), row.view(2, 1, 8), *cache, torch.arange(3))
    with pytest.raises(ValueError, match="expected a contiguous cache of heads of 4"):
        write_cache(row.view(2, 2, 4), row.view(2, 2, 4), *cache, torch.arange(2))
