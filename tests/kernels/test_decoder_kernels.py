"""The kernels of the lean decoder say what torch says, and a row gets the same bits in any company."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from outrider_doubles.closeness import close
from torch.nn import functional

from outrider_kernels import row_parts
from outrider_kernels.gated_unit_numba import silu_and_multiply
from outrider_kernels.key_value_cache_numba import new_cache
from outrider_kernels.number_formats_numba import numbers_of
from outrider_kernels.paged_attention import BLOCK_SIZE
from outrider_kernels.rms_norm_numba import add_rms_norm, rms_norm, rms_norm_heads
from outrider_kernels.rotary_numba import RotaryOutputs, RotaryTables, rotate_and_write

DTYPES = [torch.float32, torch.bfloat16]
EPSILON = 1e-5
WIDTHS = [576, 60, 7]  # SmolLM2, no multiple of 16, less than 16
MANY = row_parts.MOST_NUMBERS_OF_ONE_THREAD // 576 + 10  # rows that are shared out to threads


def norm_of(hidden: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """As transformers writes it."""
    wide = hidden.float()
    return weight * (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + EPSILON)).to(hidden.dtype)


def added_and_normed(hidden: torch.Tensor, delta: torch.Tensor, weight: torch.Tensor) -> list[torch.Tensor]:
    hidden, out = hidden.clone(), torch.empty_like(hidden)
    add_rms_norm(numbers_of(hidden), numbers_of(delta), numbers_of(weight), EPSILON, numbers_of(out))
    return [hidden, out]


def multiplied(gate_up: torch.Tensor) -> torch.Tensor:
    out = torch.empty(len(gate_up), gate_up.shape[1] // 2, dtype=gate_up.dtype)
    silu_and_multiply(numbers_of(gate_up), numbers_of(out))
    return out


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("rows", [1, 5, MANY])
def test_residual_sum_and_norm_are_those_of_torch(rows: int, width: int, dtype: torch.dtype) -> None:
    torch.manual_seed(width)
    hidden, delta, weight = torch.randn(rows, width).to(dtype), torch.randn(rows, width).to(dtype), torch.randn(width)
    summed, normed = added_and_normed(hidden, delta, weight.to(dtype))
    assert torch.equal(summed, hidden + delta)
    close(normed, norm_of(hidden + delta, weight.to(dtype)))
    out = torch.empty_like(hidden)
    rms_norm(numbers_of(summed), numbers_of(weight.to(dtype)), EPSILON, numbers_of(out))
    assert torch.equal(out, normed)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("rows", [3, 400])
def test_only_the_named_heads_are_normed(rows: int, dtype: torch.dtype) -> None:
    projected, weight = torch.randn(rows, 6, 32).to(dtype), torch.randn(32).to(dtype)
    out = projected.clone()
    rms_norm_heads(numbers_of(out.view(rows, -1)), slice(1, 4), numbers_of(weight), EPSILON)
    assert torch.equal(out[:, [0, 4, 5]], projected[:, [0, 4, 5]])
    close(out[:, 1:4], norm_of(projected[:, 1:4], weight))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("rows", [1, 5, MANY])
def test_the_gated_unit_is_that_of_torch(rows: int, dtype: torch.dtype) -> None:
    gate_up = (torch.randn(rows, 2 * 576) * 5).to(dtype)
    gate_up[0, :6] = torch.tensor([0.0, -0.0, 100.0, -100.0, 1e-30, -80.0])
    close(multiplied(gate_up), functional.silu(gate_up[:, :576]) * gate_up[:, 576:])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_nan_and_infinity_pass_through(dtype: torch.dtype) -> None:
    gate_up = torch.tensor([[torch.nan, torch.inf, -torch.inf, 1.0, 2.0, 2.0, 2.0, torch.nan]], dtype=dtype)
    found = multiplied(gate_up)[0]
    assert found[0].isnan() and found[1] == torch.inf and found[3].isnan()
    hidden = torch.ones(2, 20, dtype=dtype)
    hidden[0, 3] = torch.nan
    _, normed = added_and_normed(hidden, hidden, hidden[1].clone())
    assert normed[0].isnan().all() and normed[1].isfinite().all()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("width", WIDTHS)
def test_a_row_gets_the_same_bits_alone_and_among_neighbours(width: int, dtype: torch.dtype) -> None:
    torch.manual_seed(1)
    rows = row_parts.MOST_NUMBERS_OF_ONE_THREAD // width + 3
    hidden, delta = torch.randn(rows, width).to(dtype), torch.randn(rows, width).to(dtype)
    weight, gate_up = torch.randn(width).to(dtype), torch.randn(rows, 2 * width).to(dtype)
    _, normed = added_and_normed(hidden, delta, weight)
    gated = multiplied(gate_up)
    for first, count in ((0, 1), (rows // 2, 1), (rows - 1, 1), (3, 7), (1, rows // 2)):
        part = slice(first, first + count)
        assert torch.equal(added_and_normed(hidden[part], delta[part], weight)[1], normed[part])
        assert torch.equal(multiplied(gate_up[part]), gated[part])


class Rotated:
    """T tokens of 3 query heads and 2 key-value heads of 8 numbers, rotated into queries and a cache."""

    def __init__(self, dtype: torch.dtype, rows: int) -> None:
        torch.manual_seed(0)
        self.rows = rows
        self.projected = torch.randn(rows, 7, 8).to(dtype)
        angles = torch.rand(rows + 3, 4)
        self.cosines, self.sines = angles.cos().to(dtype), angles.sin().to(dtype)
        self.positions = np.arange(3, rows + 3, dtype=np.int32)
        self.slots = np.random.default_rng(0).permutation(rows + BLOCK_SIZE)[:rows].astype(np.int64)
        self.num_blocks = rows // BLOCK_SIZE + 2
        self.kind = np.uint16 if dtype == torch.bfloat16 else np.float32

    def run(self, part: slice) -> RotaryOutputs:
        """Some of the tokens, into fresh arrays."""
        projected = self.projected[part].reshape(-1, 7 * 8)
        outputs = RotaryOutputs(
            np.zeros((len(projected), 3, 8), np.float32), *new_cache(self.num_blocks, 2, 8, self.kind)
        )
        tables = RotaryTables(self.cosines.float().numpy(), self.sines.float().numpy())
        rotate_and_write(numbers_of(projected), tables, self.positions[part], self.slots[part], outputs)
        return outputs

    def expected(self, heads: slice) -> torch.Tensor:
        """As transformers writes it, in its rounding."""
        head = self.projected[:, heads]
        turned = torch.cat([-head[..., 4:], head[..., :4]], -1)
        cosines, sines = (torch.cat([t, t], 1)[self.positions][:, None] for t in (self.cosines, self.sines))
        return (head * cosines + turned * sines).float()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("rows", [5, 700])
def test_rotated_heads_are_those_of_torch_and_lie_where_attention_reads(rows: int, dtype: torch.dtype) -> None:
    rotated = Rotated(dtype, rows)
    outputs = rotated.run(slice(None))
    queries = torch.from_numpy(outputs.queries)
    keys, values = (torch.from_numpy(array).view(dtype).float() for array in (outputs.keys, outputs.values))
    blocks, offsets = (torch.from_numpy(part) for part in np.divmod(rotated.slots, BLOCK_SIZE))
    torch.testing.assert_close(queries, rotated.expected(slice(0, 3)), atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(keys[blocks, :, :, offsets], rotated.expected(slice(3, 5)), atol=1e-6, rtol=1e-6)
    assert torch.equal(values[blocks, :, offsets], rotated.projected[:, 5:].float())
    assert np.count_nonzero(values.numpy()) <= rows * 2 * 8


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_token_is_rotated_to_the_same_bits_alone_and_among_neighbours(dtype: torch.dtype) -> None:
    rotated = Rotated(dtype, 700)
    whole = rotated.run(slice(None))
    for token in (0, 350, 699):
        alone = rotated.run(slice(token, token + 1))
        block, offset = divmod(int(rotated.slots[token]), BLOCK_SIZE)
        assert np.array_equal(alone.queries[0], whole.queries[token])
        assert np.array_equal(alone.keys[block, :, :, offset], whole.keys[block, :, :, offset])


def test_numbers_share_the_memory_of_their_tensor() -> None:
    tensor = torch.zeros(2, 2, dtype=torch.bfloat16)
    numbers_of(tensor)[1, 1] = 0x3F80
    assert tensor[1, 1] == 1


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_the_number_of_threads_changes_no_bit(set_numba_threads: Callable[[int], None], dtype: torch.dtype) -> None:
    gate_up, weight = torch.randn(MANY, 2 * 576).to(dtype), torch.randn(576).to(dtype)
    hidden = torch.randn(MANY, 576).to(dtype)
    found = []
    for threads in (1, 2):
        set_numba_threads(threads)
        found.append([*added_and_normed(hidden, hidden, weight), multiplied(gate_up)])
    assert all(torch.equal(one, two) for one, two in zip(*found, strict=True))
