"""What invariance costs: kernels whose rows do not depend on their company, beside the library's on the same arguments.

Every case holds both forms and can check that they agree within the rounding of the dtype, on any device: on a CPU with
interpreted kernels, which is how tests run it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import torch

from outrider_kernels.paged_attention import BLOCK_SIZE

EPSILON = 1e-5
_TOLERANCES = {torch.bfloat16: 2e-2, torch.float16: 3e-3, torch.float32: 1e-4}
"""Of the largest number of a result."""


class Decoder(NamedTuple):
    """Sizes of one layer."""

    name: str
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_size: int


class Step(NamedTuple):
    """Rows of a forward, all of the same length."""

    rows: int
    tokens_a_row: int
    length: int
    """Tokens of a row in the cache, those of the step included."""

    def __str__(self) -> str:
        return f"{self.rows} x {self.tokens_a_row} tokens after {self.length - self.tokens_a_row}"


class Case(NamedTuple):
    """The same result by ours and by the library's kernels."""

    name: str
    ours: Callable[[], torch.Tensor]
    """[tokens, ...]"""
    theirs: Callable[[], torch.Tensor]
    alone: Callable[[int], torch.Tensor]
    """[1, ...] ours, of one token without its company."""


DECODERS = (
    Decoder("SmolLM2 135M", 576, 1536, 9, 3, 64),
    Decoder("Llama 3.1 8B", 4096, 14336, 32, 8, 128),
    Decoder("Qwen3 32B", 5120, 25600, 64, 8, 128),
)
STEPS = (Step(1, 1, 1024), Step(1, 5, 1024), Step(16, 5, 1024), Step(64, 5, 1024), Step(1, 512, 512))


def cases(decoder: Decoder, step: Step, dtype: torch.dtype, device: str) -> Iterator[Case]:
    """Linears, norm and attention of one layer."""
    source = torch.Generator().manual_seed(decoder.hidden)
    tokens = step.rows * step.tokens_a_row

    def drawn(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=source).to(device, dtype)

    projected = (decoder.heads + 2 * decoder.kv_heads) * decoder.head_size
    for name, inputs, outputs in (
        ("projection to queries, keys, values", decoder.hidden, projected),
        ("gate and up", decoder.hidden, 2 * decoder.intermediate),
        ("down", decoder.intermediate, decoder.hidden),
    ):
        yield _linear(name, drawn(tokens, inputs), drawn(outputs, inputs) / inputs**0.5)
    yield _norm(drawn(tokens, decoder.hidden), drawn(decoder.hidden))
    yield _attention(decoder, step, drawn)


def difference(case: Case) -> float:
    """Largest difference of the two results over the largest number of the library's."""
    theirs = case.theirs().float()
    return float((case.ours().float() - theirs).abs().max() / theirs.abs().max())


def differing_alone(case: Case) -> int:
    """How many numbers of some tokens, the first and the last among them, are others when the token stands alone."""
    together, differing = case.ours().clone(), 0
    for token in sorted({0, len(together) // 3, len(together) // 2, len(together) - 1}):
        differing += int((case.alone(token)[0] != together[token]).sum())
    return differing


def tolerance(dtype: torch.dtype) -> float:
    """What `difference` may be."""
    return _TOLERANCES[dtype]


def _linear(name: str, x: torch.Tensor, weight: torch.Tensor) -> Case:
    from outrider_kernels.triton_twins.linear_triton import invariant_linear

    return Case(
        f"{name}, {weight.shape[1]} to {weight.shape[0]}",
        lambda: invariant_linear(x, weight, None),
        lambda: torch.nn.functional.linear(x, weight),
        lambda token: invariant_linear(x[token : token + 1], weight, None),
    )


def _norm(hidden: torch.Tensor, weight: torch.Tensor) -> Case:
    from outrider_kernels.triton_twins.rms_norm_triton import rms_norm

    out = torch.empty_like(hidden)

    def ours() -> torch.Tensor:
        rms_norm(hidden, weight, EPSILON, out)
        return out

    def alone(token: int) -> torch.Tensor:
        one = torch.empty_like(hidden[:1])
        rms_norm(hidden[token : token + 1], weight, EPSILON, one)
        return one

    def theirs() -> torch.Tensor:
        return torch.nn.functional.rms_norm(hidden, weight.shape, weight, EPSILON)

    return Case(f"norm, {len(weight)} wide", ours, theirs, alone)


def _attention(decoder: Decoder, step: Step, drawn: Callable[..., torch.Tensor]) -> Case:
    """Ours out of pages, torch's over dense keys and values of the same numbers."""
    from outrider_kernels.triton_twins.paged_attention_triton import paged_attention
    from outrider_kernels.triton_twins.query_tiles import query_tiles

    rows, count, length = step
    size, blocks = decoder.head_size, -(-length // BLOCK_SIZE)
    queries = drawn(rows * count, decoder.heads, size)
    keys = drawn(rows * blocks, decoder.kv_heads, size, BLOCK_SIZE)
    values = drawn(rows * blocks, decoder.kv_heads, BLOCK_SIZE, size)
    device = queries.device
    owners = np.repeat(np.arange(rows, dtype=np.int32), count)
    positions = torch.arange(length - count, length, dtype=torch.int32).repeat(rows).to(device)
    tables = torch.arange(rows * blocks, dtype=torch.int32).view(rows, blocks).to(device)
    tiles, token_rows = query_tiles(owners, decoder.heads // decoder.kv_heads, device), torch.from_numpy(owners)
    arguments = queries, keys, values, tables, token_rows.to(device), positions, tiles, size**-0.5
    by_head = queries.view(rows, count, decoder.heads, size).transpose(1, 2)
    dense_keys = keys.view(rows, blocks, decoder.kv_heads, size, BLOCK_SIZE).permute(0, 2, 1, 4, 3)
    dense_values = values.view(rows, blocks, decoder.kv_heads, BLOCK_SIZE, size).transpose(1, 2)
    dense_keys = dense_keys.reshape(rows, decoder.kv_heads, -1, size)[:, :, :length]
    dense_values = dense_values.reshape(rows, decoder.kv_heads, -1, size)[:, :, :length]
    seen = torch.ones(count, length, dtype=torch.bool, device=device).tril(length - count)

    def theirs() -> torch.Tensor:
        attend = torch.nn.functional.scaled_dot_product_attention
        grouped = decoder.heads != decoder.kv_heads
        mixed = attend(by_head, dense_keys, dense_values, attn_mask=seen, enable_gqa=grouped)
        return mixed.transpose(1, 2).reshape(queries.shape)

    def alone(token: int) -> torch.Tensor:
        row, at = token // count, slice(token, token + 1)
        first = np.zeros(1, np.int32)
        tile = query_tiles(first, decoder.heads // decoder.kv_heads, device)
        where = tables[row : row + 1], torch.from_numpy(first).to(device), positions[at]
        return paged_attention(queries[at], keys, values, *where, tile, size**-0.5)

    name = f"attention, {decoder.heads} heads over {decoder.kv_heads}"
    return Case(name, lambda: paged_attention(*arguments), theirs, alone)
