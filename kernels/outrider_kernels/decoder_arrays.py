"""What one compiled pass over a decoder reads and writes.

Sizes: L layers, T tokens, N tokens whose logits are wanted, R runs, E hidden size, H query heads, KH key-value heads,
D head size, I intermediate size, V ids. Weights, activations and cache are bfloat16, as uint16 bits.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from outrider_kernels.huge_pages import HUGE_PAGES

Floats = npt.NDArray[np.float32]
Halves = npt.NDArray[np.uint16]
Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]

INPUT_NORM, QUERY_NORM, KEY_NORM, MLP_NORM = range(4)
"""Columns of `Decoder.norms` and `Decoder.epsilons`."""
PROJECTION, OUTPUT, GATE_UP, DOWN = range(4)
"""Columns of `Decoder.panels` and `Decoder.biases`."""


class Decoder(NamedTuple):
    """A model and its cache. Layers are addresses: each has memory of its own, which somebody else keeps.

    It is flat, for numba hands on no tuples within tuples to several threads.
    """

    num_heads: int
    """H"""
    num_kv_heads: int
    """KH"""
    head_dim: int
    """D"""
    num_blocks: int
    """Of the cache."""
    embedding: Halves
    """[V, E]"""
    norms: Longs
    """[L, 4] addresses; 0 where a model's heads have none."""
    epsilons: Floats
    """[L, 4]"""
    panels: Longs
    """[L, 4] addresses of weights in panels."""
    biases: Longs
    """[L, 4] addresses of float32, as many as the panels are wide."""
    scales: Floats
    """[L] of scores."""
    windows: Longs
    """[L] positions that a token sees, or 0."""
    caches: Longs
    """[L, 2] addresses of keys and of values."""
    cosines: Floats
    """[positions, D / 2]"""
    sines: Floats
    """[positions, D / 2]"""
    final_norm: int
    """Address of [E]."""
    final_epsilon: np.float32
    head: int
    """Address of the panels of the output head."""
    head_bias: int


class DecoderStep(NamedTuple):
    """The tokens of one step, row after row."""

    token_ids: Longs
    """[T]"""
    positions: Ints
    """[T]"""
    slots: Longs
    """[T] block * BLOCK_SIZE + offset of each token's own keys and values."""
    token_rows: Ints
    """[T]"""
    block_tables: Ints
    """[rows, W]"""
    run_starts: Ints
    """[R + 1] a run is neighbouring tokens of one row, which attend together."""
    wanted: Longs
    """[N] tokens whose logits are wanted, strictly ascending."""


class Activations(NamedTuple):
    """Memory for at least T tokens; what an earlier step left there is of no account."""

    hidden: Halves
    """[T, E] the residual stream."""
    normed: Halves
    """[T, E]"""
    projected: Halves
    """[T, (H + 2 * KH) * D]"""
    queries: Floats
    """[T, H, D]"""
    attended_heads: Floats
    """[T, H, D]"""
    attended: Halves
    """[T, H * D]"""
    delta: Halves
    """[T, E] what is added to the residual stream next."""
    gate_up: Halves
    """[T, 2 * I]"""
    gated: Halves
    """[T, I]"""


def new_activations(decoder: Decoder, intermediate: int, num_tokens: int) -> Activations:
    """For up to `num_tokens` tokens and an intermediate size."""
    hidden, all_heads = decoder.embedding.shape[1], decoder.num_heads + 2 * decoder.num_kv_heads

    def halves(width: int) -> Halves:
        return HUGE_PAGES.zeros((num_tokens, width), np.uint16)

    def floats() -> Floats:
        return HUGE_PAGES.zeros((num_tokens, decoder.num_heads, decoder.head_dim), np.float32)

    return Activations(
        hidden=halves(hidden),
        normed=halves(hidden),
        projected=halves(all_heads * decoder.head_dim),
        queries=floats(),
        attended_heads=floats(),
        attended=halves(decoder.num_heads * decoder.head_dim),
        delta=halves(hidden),
        gate_up=halves(2 * intermediate),
        gated=halves(intermediate),
    )
