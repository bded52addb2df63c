"""Kernels of a decoder's layer against the CPU's, and a token's numbers alone against the same in a batch, bit by bit.

Every check counts numbers that differ, on any device: on a CPU with interpreted kernels, which is how tests run it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import torch

from gpu_invariance import EPSILON, tolerance
from gpu_logit_checks import Check, unequal
from outrider_kernels import gated_unit_numba, rms_norm_numba, rotary_numba
from outrider_kernels.number_formats_numba import numbers_of
from outrider_kernels.paged_attention import BLOCK_SIZE

_TOKENS, _HEADS, _KV_HEADS = 17, 4, 2


def decoder_checks(head_size: int, width: int, dtype: torch.dtype, device: str) -> Iterator[Check]:
    """Checks of rotary positions and the cache at heads of one size, of gated unit and norm at one width."""
    kind = str(dtype).removeprefix("torch.")
    yield Check(
        f"rotary positions, heads of {head_size} {kind}", partial(_differing_rotations, head_size, dtype, device)
    )
    yield Check(f"cache write, heads of {head_size} {kind}", partial(_differing_cache, head_size, dtype, device))
    yield Check(f"gated unit, {width} {kind}", partial(_differing_gates, width, dtype, device))
    yield Check(f"add and norm, {width} {kind}", partial(_differing_norms, width, dtype, device))


def _differing_rotations(size: int, dtype: torch.dtype, device: str) -> int:
    from outrider_kernels.triton_twins.rotary_triton import RotaryOutputs, RotaryTables, rotate_and_write

    blocks = 6
    projected = _drawn(_TOKENS, (_HEADS + 2 * _KV_HEADS) * size, dtype=dtype)
    angles = torch.outer(torch.arange(200.0), torch.logspace(0, -3, size // 2))
    tables = [angles.cos().to(dtype).float(), angles.sin().to(dtype).float()]
    positions, slots = (torch.arange(_TOKENS) * 11).int(), torch.arange(_TOKENS).flip(0) * 5
    shapes = (
        (_TOKENS, _HEADS, size),
        (blocks, _KV_HEADS, size, BLOCK_SIZE),
        (blocks, _KV_HEADS, BLOCK_SIZE, size),
    )
    ours = RotaryOutputs(*(torch.full(shape, -1.0, device=device) for shape in shapes))
    theirs = rotary_numba.RotaryOutputs(*(np.full(shape, -1, np.float32) for shape in shapes))
    moved = [tensor.to(device) for tensor in (projected, *tables, positions, slots)]
    rotate_and_write(moved[0], RotaryTables(moved[1], moved[2]), moved[3], moved[4], ours)
    numba_tables = rotary_numba.RotaryTables(*(table.numpy() for table in tables))
    rotary_numba.rotate_and_write(numbers_of(projected), numba_tables, positions.numpy(), slots.numpy(), theirs)
    return sum(unequal(one, other) for one, other in zip(ours, theirs, strict=True))


def _differing_cache(size: int, dtype: torch.dtype, device: str) -> int:
    """Written keys and values, read again at their places, and zeros everywhere else."""
    from outrider_kernels.triton_twins.rotary_triton import write_cache

    keys, blocks = _drawn(_TOKENS, _KV_HEADS, size, dtype=dtype).to(device), 4
    key_cache = torch.zeros(blocks, _KV_HEADS, size, BLOCK_SIZE, dtype=dtype, device=device)
    value_cache = torch.zeros(blocks, _KV_HEADS, BLOCK_SIZE, size, dtype=dtype, device=device)
    slots = torch.arange(_TOKENS, device=device).flip(0) * 3
    write_cache(keys, -keys, key_cache, value_cache, slots)
    block, place = slots // BLOCK_SIZE, slots % BLOCK_SIZE
    strays = key_cache.count_nonzero() + value_cache.count_nonzero() - 2 * keys.count_nonzero()
    return (
        unequal(key_cache[block, :, :, place], keys) + unequal(value_cache[block, :, place], -keys) + abs(int(strays))
    )


def _differing_gates(width: int, dtype: torch.dtype, device: str) -> int:
    from outrider_kernels.triton_twins.gated_unit_triton import silu_and_multiply

    gate_up = _drawn(_TOKENS, 2 * width, dtype=dtype) * 5
    ours, alone = (torch.empty(count, width, dtype=dtype, device=device) for count in (_TOKENS, 1))
    theirs = torch.empty(_TOKENS, width, dtype=dtype)
    silu_and_multiply(gate_up.to(device), ours)
    gated_unit_numba.silu_and_multiply(numbers_of(gate_up), numbers_of(theirs))
    differing = _far(ours, theirs)
    for token in range(_TOKENS):
        silu_and_multiply(gate_up[token : token + 1].to(device), alone)
        differing += unequal(alone, ours[token : token + 1])
    return differing


def _differing_norms(width: int, dtype: torch.dtype, device: str) -> int:
    from outrider_kernels.triton_twins.rms_norm_triton import add_rms_norm

    hidden, delta, weight = (_drawn(*shape, dtype=dtype) for shape in ((_TOKENS, width), (_TOKENS, width), (width,)))
    summed, theirs_sum, theirs = hidden.to(device, copy=True), hidden.clone(), hidden.clone()
    ours = torch.empty_like(summed)
    add_rms_norm(summed, delta.to(device), weight.to(device), EPSILON, ours)
    arguments = numbers_of(delta), numbers_of(weight), EPSILON, numbers_of(theirs)
    rms_norm_numba.add_rms_norm(numbers_of(theirs_sum), *arguments)
    differing = unequal(summed, theirs_sum) + _far(ours, theirs)
    for token in range(_TOKENS):
        one = slice(token, token + 1)
        alone_sum = hidden[one].to(device, copy=True)
        alone = torch.empty_like(alone_sum)
        add_rms_norm(alone_sum, delta[one].to(device), weight.to(device), EPSILON, alone)
        differing += unequal(alone, ours[one])
    return differing


def _drawn(*shape: int, dtype: torch.dtype) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(len(shape))).to(dtype)


def _far(ours: torch.Tensor, theirs: torch.Tensor) -> int:
    """Numbers further apart than the dtype's rounding explains."""
    one, other = ours.cpu().float(), theirs.float()
    return int((~((one - other).abs() <= tolerance(ours.dtype) * other.abs().max())).sum())
