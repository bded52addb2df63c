"""Batches to verify on a GPU."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch

from outrider_kernels.contracts import SamplingRows, VerifyRows


class Shape(NamedTuple):
    """Size of a batch."""

    rows: int
    depth: int
    vocab_size: int
    dtype: torch.dtype

    def __str__(self) -> str:
        return f"{self.rows} x {self.depth + 1} x {self.vocab_size} {str(self.dtype).removeprefix('torch.')}"


class Filtering(NamedTuple):
    """How tokens are chosen, the same in every row."""

    name: str
    temperature: float
    top_k: int
    top_p: float
    min_p: float


class Batch(NamedTuple):
    """Arguments of `verify`."""

    logits: torch.Tensor
    rows: VerifyRows
    sampling: SamplingRows


SHAPES = tuple(
    Shape(rows, depth, vocab_size, dtype)
    for rows, depth in ((1, 4), (16, 4), (64, 4), (256, 1))
    for vocab_size in (49152, 151936, 262144)
    for dtype in (torch.bfloat16, torch.float32)
)
FILTERINGS = (
    Filtering("greedy", 0.0, 0, 1.0, 0.0),
    Filtering("T = 1", 1.0, 0, 1.0, 0.0),
    Filtering("top-k 50", 1.0, 50, 1.0, 0.0),
    Filtering("top-p 0.95", 1.0, 0, 0.95, 0.0),
    Filtering("top-k 20, top-p 0.8", 0.7, 20, 0.8, 0.0),
    Filtering("min-p 0.05", 1.0, 0, 1.0, 0.05),
)


def batch(shape: Shape, filtering: Filtering, device: str) -> Batch:
    """Logits like those of a model, a few likely ids over a broad tail, and proposals that are right half the time."""
    source = torch.Generator().manual_seed(shape.vocab_size)
    count = shape.rows * (shape.depth + 1)
    logits = torch.randn(count, shape.vocab_size, generator=source) * 2
    head = torch.randint(shape.vocab_size, (count, 40), generator=source)
    logits.scatter_add_(1, head, torch.linspace(14, 5, 40).expand(count, 40))
    starts = np.arange(0, count + 1, shape.depth + 1, dtype=np.int32)
    likeliest = logits.argmax(1).numpy().reshape(shape.rows, shape.depth + 1)
    rows = VerifyRows(starts, likeliest[:, : shape.depth].ravel().astype(np.int32), np.arange(shape.rows) + 100)
    sampling = SamplingRows(
        np.full(shape.rows, filtering.temperature),
        np.full(shape.rows, filtering.top_k, np.int32),
        np.full(shape.rows, filtering.top_p),
        np.full(shape.rows, filtering.min_p),
        np.arange(shape.rows, dtype=np.uint64),
    )
    return Batch(logits.to(device, shape.dtype), rows, sampling)
