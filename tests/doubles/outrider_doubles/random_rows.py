"""Rows of verification drawn at random, with every kind of change that a request can ask for."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch

from outrider_kernels.contracts import SamplingRows, VerifyRows
from outrider_kernels.logits_rows import RowChange


class AnyRows(NamedTuple):
    """Logits that tie often, and rows over them."""

    depths: np.ndarray
    """[B]"""
    logits: torch.Tensor
    """[N, V] float32"""
    rows: VerifyRows


def ints(*values: int) -> np.ndarray:
    """As int32."""
    return np.array(values, np.int32)


def random_change(source: np.random.Generator, vocab_size: int, safe: int = 1) -> RowChange:
    """Some of everything; small vocabularies make bad words and repetitions likely. Ids below `safe` stay allowed."""

    def some(most: int, first: int = 0) -> np.ndarray:
        size = min(int(source.integers(0, most + 1)), vocab_size - first)
        return (source.permutation(vocab_size - first)[:size] + first).astype(np.int32)

    seen, bias, allowed = some(6), some(4), some(vocab_size)
    return RowChange(
        repetition=float(source.choice([1.0, 0.5, 1.3, 2.0])),
        presence=float(source.choice([0.0, -2.0, 0.7])),
        frequency=float(source.choice([0.0, 2.0, -0.3])),
        seen_ids=seen,
        seen_counts=source.integers(0, 4, len(seen)).astype(np.int32),
        bias_ids=bias,
        bias_values=source.uniform(-3, 3, len(bias)),
        allowed_ids=np.union1d(allowed, np.arange(safe)).astype(np.int32) if source.random() < 0.3 else ints(),
        ending_positions=int(source.integers(0, 5)),
        ending_ids=some(2, first=safe),
        words=[source.integers(safe, vocab_size, source.integers(1, 4)).astype(np.int32) for _ in range(3)],
        recent_ids=source.integers(0, vocab_size, source.integers(3)).astype(np.int32),
    )


def random_sampling(source: np.random.Generator, count: int) -> SamplingRows:
    """Greedy and not, filtered and not."""
    return SamplingRows(
        source.choice([0.0, 0.01, 1.0, 2.0], count),
        source.choice([0, 0, 1, 3], count).astype(np.int32),
        source.choice([1.0, 1.0, 0.8], count),
        source.choice([0.0, 0.0, 0.1], count),
        source.integers(0, 2**63, count).astype(np.uint64),
    )


def any_rows(source: np.random.Generator, vocab_size: int, most_rows: int, deepest: int) -> AnyRows:
    """Ragged rows with random proposals. Every seventh logit is -inf, so that masks sometimes leave nothing."""
    depths = source.integers(0, deepest + 1, source.integers(1, most_rows + 1))
    starts = np.cumsum([0, *(depths + 1)]).astype(np.int32)
    logits = torch.from_numpy(source.integers(-3, 4, (int(starts[-1]), vocab_size)).astype(np.float32))
    logits[:, 1:][torch.from_numpy(source.random((int(starts[-1]), vocab_size - 1)) < 1 / 7)] = -torch.inf
    proposed = source.integers(0, vocab_size, int(depths.sum())).astype(np.int32)
    return AnyRows(depths, logits, VerifyRows(starts, proposed, source.integers(0, 99, len(depths))))
