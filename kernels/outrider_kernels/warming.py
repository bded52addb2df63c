"""Compiles all kernels ahead of the first step."""

from __future__ import annotations

import numpy as np
import torch

from outrider_kernels.contracts import SamplingRows, VerifyRows
from outrider_kernels.paged_attention import BLOCK_SIZE
from outrider_kernels.paged_attention_numba import paged_attention, write_cache
from outrider_kernels.verify import verify


def warm_up() -> None:
    """Run every kernel once on the smallest arrays: compiles it, or loads it from disk, in seconds."""
    rows = VerifyRows(np.array([0, 1], np.int32), np.zeros(0, np.int32), np.zeros(1, np.int64))
    sampling = SamplingRows(np.ones(1), np.ones(1, np.int32), np.ones(1), np.zeros(1), np.zeros(1, np.uint64))
    verify(torch.zeros(1, 2), rows, sampling)
    token, places = np.zeros((1, 1, 1), np.float32), np.zeros(1, np.int32)
    keys, values = np.zeros((1, 1, 1, BLOCK_SIZE), np.float32), np.zeros((1, 1, BLOCK_SIZE, 1), np.float32)
    write_cache(token, token, keys, values, np.zeros(1, np.int64))
    paged_attention(token, keys, values, np.zeros((1, 1), np.int32), places, places, 1.0)
