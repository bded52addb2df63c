"""The compiled verification emits what the reference emits, on tables chosen to part them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from outrider_kernels.contracts import PADDING_ID, SamplingRows, VerifyResult, VerifyRows
from outrider_kernels.reference import verify_reference
from outrider_kernels.verify import verify

DEPTHS = [0, 1, 7, 0, 3]
FILTERS = [
    # top_k, top_p, min_p
    (0, 1.0, 0.0),
    (1, 1.0, 0.0),
    (50, 1.0, 0.0),
    (900, 1.0, 0.0),  # more than there are blocks of 64 ids in 49152
    (0, 0.9, 0.0),
    (0, 1e-9, 0.0),  # only the likeliest is left
    (0, 1 - 2**-53, 0.0),  # all that has mass is left
    (20, 0.8, 0.0),
    (5000, 0.999, 0.0),
    (0, 1.0, 0.05),
    (0, 1.0, 1.0),  # the likeliest, and what ties with it
    (7, 0.7, 0.1),
]


def tables(vocab_size: int, count: int, kind: str) -> torch.Tensor:
    """Logits [count, vocab_size] float32."""
    source = torch.Generator().manual_seed(vocab_size)
    logits = torch.randn(count, vocab_size, generator=source) * 3
    if kind == "ties":
        return logits.round()
    if kind == "bfloat16":
        return logits.bfloat16().float()
    if kind == "masked":
        masked = torch.rand(count, vocab_size, generator=source) < 0.7
        masked[:, vocab_size // 2] = False
        return logits.masked_fill(masked, -torch.inf)
    if kind == "equal":
        return torch.zeros(count, vocab_size)
    if kind == "signed zeros":
        return torch.where(logits > 0, 0.0, -0.0)
    return logits


def broken(proposals: list[list[int]], vocab_size: int) -> list[list[int]]:
    """Every other row goes wrong half way."""
    wrong = [list(ids) for ids in proposals]
    for ids in wrong[::2]:
        if ids:
            ids[len(ids) // 2] = (ids[len(ids) // 2] + 1) % vocab_size
    return wrong


def one_row_each(cases: list[tuple[float, tuple[int, float, float]]]) -> SamplingRows:
    """A row for every pair of temperature and filters."""
    columns = zip(*((temperature, *filters) for temperature, filters in cases), strict=True)
    temperature, top_k, top_p, min_p = (np.array(column) for column in columns)
    return SamplingRows(temperature, top_k.astype(np.int32), top_p, min_p, np.arange(len(cases), dtype=np.uint64))


def assert_same(given: VerifyResult, expected: VerifyResult) -> None:
    assert given.accepted_counts.tolist() == expected.accepted_counts.tolist()
    assert given.emitted.tolist() == expected.emitted.tolist()


@pytest.mark.parametrize("kind", ["normal", "ties", "bfloat16", "masked", "equal", "signed zeros"])
@pytest.mark.parametrize(("top_k", "top_p", "min_p"), FILTERS)
@pytest.mark.parametrize("vocab_size", [5, 64, 8193])  # smaller than a block, just one, many and one id more
def test_compiled_equals_reference(
    sampling_rows, verify_rows, true_proposals, vocab_size: int, top_k: int, top_p: float, min_p: float, kind: str
) -> None:
    logits = tables(vocab_size, sum(DEPTHS) + len(DEPTHS), kind)
    for temperature in (0.0, 0.01, 0.7, 2.0):
        sampling = sampling_rows(len(DEPTHS), temperature, top_k, top_p, min_p)
        truth = true_proposals(logits, DEPTHS, sampling)
        accepting = verify(logits, verify_rows(truth), sampling)
        assert accepting.accepted_counts.tolist() == DEPTHS
        assert_same(accepting, verify_reference(logits, verify_rows(truth), sampling))
        rows = verify_rows(broken(truth, vocab_size))
        assert_same(verify(logits, rows, sampling), verify_reference(logits, rows, sampling))


@pytest.mark.parametrize("kind", ["normal", "bfloat16", "equal"])
def test_compiled_equals_reference_over_a_full_vocabulary(sampling_rows, verify_rows, kind: str) -> None:
    cases = list(itertools.product((0.0, 0.01, 1.0, 2.0), FILTERS))
    logits, sampling = tables(49152, len(cases), kind), one_row_each(cases)
    rows = verify_rows([[] for _ in cases])
    assert_same(verify(logits, rows, sampling), verify_reference(logits, rows, sampling))


@pytest.mark.parametrize(
    ("vocab_size", "depth"),
    [
        (32000, 7),  # Llama 2's, a deep row in every way of choosing
        (151936, 1),  # Qwen's, no power of two
        (262144, 0),  # the largest in use
    ],
)
def test_compiled_equals_reference_over_larger_vocabularies(
    sampling_rows, verify_rows, true_proposals, vocab_size: int, depth: int
) -> None:
    cases = [(0.0, FILTERS[0]), *((1.0, filters) for filters in FILTERS[: len(FILTERS) if depth < 7 else 4])]
    logits, sampling = tables(vocab_size, len(cases) * (depth + 1), "bfloat16"), one_row_each(cases)
    truth = true_proposals(logits, [depth] * len(cases), sampling)
    for proposals in (truth, broken(truth, vocab_size)):
        rows = verify_rows(proposals)
        assert_same(verify(logits, rows, sampling), verify_reference(logits, rows, sampling))


def test_proposing_one_id_again_and_again_changes_nothing(sampling_rows, verify_rows) -> None:
    logits = tables(64, 8, "normal")
    for temperature in (0.0, 1.0):
        first = verify(logits[:1], verify_rows([[]]), sampling_rows(1, temperature)).emitted.item()
        rows, sampling = verify_rows([[first] * 7]), sampling_rows(1, temperature)
        given = verify(logits, rows, sampling)
        assert given.accepted_counts.tolist() == [1]
        assert_same(given, verify_reference(logits, rows, sampling))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_logits_count_as_float32(sampling_rows, verify_rows, dtype: torch.dtype) -> None:
    logits = tables(8193, 4, "normal").to(dtype)
    rows, sampling = verify_rows([[3], [], []]), sampling_rows(3)
    assert_same(verify(logits, rows, sampling), verify(logits.float(), rows, sampling))


def test_logits_may_be_a_strided_view(sampling_rows, verify_rows) -> None:
    logits = tables(8193, 8, "normal")[::2]
    rows, sampling = verify_rows([[3], [], []]), sampling_rows(3)
    assert_same(verify(logits, rows, sampling), verify_reference(logits, rows, sampling))


def test_tiny_temperatures_are_greedy_and_greedy_takes_the_lowest_of_equal_ids(sampling_rows, verify_rows) -> None:
    logits = torch.zeros(2, 300)
    logits[0, [299, 200, 77]] = 4.0
    rows = verify_rows([[], []])
    for temperature in (0.0, 9e-6):
        assert verify(logits, rows, sampling_rows(2, temperature)).emitted.tolist() == [77, 0]


def test_rows_out_of_use_hold_padding(sampling_rows, verify_rows) -> None:
    logits = torch.eye(4)[[2, 1, 0, 3]]
    result = verify(logits, verify_rows([[2, 3], []]), sampling_rows(2, temperature=0.0))
    assert result.accepted_counts.tolist() == [1, 0]
    assert result.emitted.tolist() == [2, 1, PADDING_ID, 3]


def test_no_rows_give_an_empty_result() -> None:
    empty = np.zeros(0)
    rows = VerifyRows(np.zeros(1, np.int32), np.zeros(0, np.int32), np.zeros(0, np.int64))
    sampling = SamplingRows(empty, np.zeros(0, np.int32), empty, empty, np.zeros(0, np.uint64))
    result = verify(torch.zeros(0, 7), rows, sampling)
    assert result.accepted_counts.shape == result.emitted.shape == (0,)


def test_seeds_and_positions_take_their_whole_range(sampling_rows, verify_rows) -> None:
    logits = tables(8193, 3, "normal")
    sampling = sampling_rows(3)._replace(seed=np.array([2**64 - 1, 2**63, 0], np.uint64))
    rows = verify_rows([[], [], []])._replace(first_position=np.array([0, 2**31 - 1, 2**40], np.int64))
    assert_same(verify(logits, rows, sampling), verify_reference(logits, rows, sampling))
