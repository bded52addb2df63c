"""Builders of verification arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numba
import numpy as np
import pytest
import torch

from outrider_kernels.contracts import SamplingRows, VerifyRows
from outrider_kernels.reference import sample_reference


def _sampling_rows(
    count: int, temperature: float = 1.0, top_k: int = 0, top_p: float = 1.0, min_p: float = 0.0, first_seed: int = 1
) -> SamplingRows:
    """The same parameters in every row, seeds counting up."""
    return SamplingRows(
        np.full(count, temperature),
        np.full(count, top_k, np.int32),
        np.full(count, top_p),
        np.full(count, min_p),
        np.arange(first_seed, first_seed + count, dtype=np.uint64),
    )


def _verify_rows(proposals: list[list[int]], first_position: int = 5) -> VerifyRows:
    """Rows with these proposals; positions differ from row to row."""
    starts = np.cumsum([0, *(len(ids) + 1 for ids in proposals)])
    return VerifyRows(
        starts.astype(np.int32),
        np.array([token for ids in proposals for token in ids], np.int32),
        np.arange(first_position, first_position + 3 * len(proposals), 3, dtype=np.int64),
    )


def _true_proposals(logits: torch.Tensor, depths: list[int], sampling: SamplingRows) -> list[list[int]]:
    """What each row of these depths would emit, so that all of it is accepted."""
    proposals: list[list[int]] = []
    start = 0
    rows = _verify_rows([[0] * depth for depth in depths])
    for row, depth in enumerate(depths):
        parameters = [values[row].item() for values in sampling]
        position = int(rows.first_position[row])
        proposals.append(
            [sample_reference(logits[start + step], *parameters, position + step) for step in range(depth)]
        )
        start += depth + 1
    return proposals


@pytest.fixture
def sampling_rows() -> Callable[..., SamplingRows]:
    return _sampling_rows


@pytest.fixture
def verify_rows() -> Callable[..., VerifyRows]:
    return _verify_rows


@pytest.fixture
def true_proposals() -> Callable[..., list[list[int]]]:
    return _true_proposals


@pytest.fixture
def set_numba_threads() -> Iterator[Callable[[int], None]]:
    """Sets numba's threads until the end of the test."""
    if numba.config.NUMBA_NUM_THREADS < 2:
        pytest.skip("numba was started with one thread")
    before = numba.get_num_threads()
    yield numba.set_num_threads
    numba.set_num_threads(before)
