"""Verification in Triton emits exactly the ids of the reference, on tables chosen to part them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from outrider_doubles.logit_tables import logit_table

from outrider_kernels.contracts import SamplingRows, VerifyResult, VerifyRows
from outrider_kernels.reference import verify_reference
from outrider_kernels.triton_twins.bad_rows import find_bad_rows_on_gpu
from outrider_kernels.triton_twins.tiling import Tiling
from outrider_kernels.triton_twins.verification import verify_on_gpu
from outrider_kernels.verify import find_bad_rows, verify

FILTERS = [
    # top_k, top_p, min_p
    (0, 1.0, 0.0),
    (1, 1.0, 0.0),
    (50, 1.0, 0.0),
    (0, 0.9, 0.0),
    (0, 1e-9, 0.0),  # only the likeliest is left
    (0, 1 - 2**-53, 0.0),  # all that has mass is left
    (20, 0.8, 0.0),
    (0, 1.0, 0.05),
    (0, 1.0, 1.0),  # the likeliest, and what ties with it
    (7, 0.7, 0.1),
]


def one_block(vocab_size: int) -> Tiling:
    """Interpreted programs take nearly as long for few ids as for many."""
    block = max(1024, 1 << (vocab_size - 1).bit_length())
    return Tiling(block=block, sum_block=min(block, 1 << 17), processors=1)


def all_filters(temperature: float) -> SamplingRows:
    """One row for every filter."""
    top_k, top_p, min_p = (np.array(column) for column in zip(*FILTERS, strict=True))
    seeds = np.arange(len(FILTERS), dtype=np.uint64)
    return SamplingRows(np.full(len(FILTERS), temperature), top_k.astype(np.int32), top_p, min_p, seeds)


def assert_same(given: VerifyResult, expected: VerifyResult) -> None:
    assert given.accepted_counts.tolist() == expected.accepted_counts.tolist()
    assert given.emitted.tolist() == expected.emitted.tolist()


@pytest.mark.parametrize(
    ("vocab_size", "depths", "dtype"),
    [
        (5, [0, 0, 0], torch.float32),  # fewer ids than a span has, nothing proposed
        (5, [7, 0, 7], torch.bfloat16),  # few ids: proposals often agree by chance, logits often tie
        (8193, [1, 0, 1], torch.float32),  # one id more than whole blocks
        (32000, [7, 0, 7], torch.float16),  # deep rows of a Llama 2 vocabulary
        (49152, [1, 0, 1], torch.bfloat16),  # the embedded model's
        (151936, [7, 0, 1], torch.bfloat16),  # Qwen's, no power of two, with a deep row
        (262144, [0, 0, 0], torch.float32),  # the largest in use: a span is one of 4096
        (262144, [7, 0, 1], torch.bfloat16),  # the same, deep: offsets of logit rows pass 2**21
    ],
)
def test_ids_equal_the_references_over_shapes(
    sampling_rows, verify_rows, true_proposals, vocab_size: int, depths: list[int], dtype: torch.dtype
) -> None:
    sampling = SamplingRows(
        np.array([1.0, 0.0, 0.7]),
        np.array([0, 0, 40], np.int32),
        np.array([1.0, 1.0, 0.9]),
        np.array([0.0, 0.0, 1e-4]),
        np.arange(3, dtype=np.uint64),
    )
    logits = logit_table(vocab_size, sum(depths) + len(depths), "normal", dtype)
    proposals = true_proposals(logits, depths, sampling)
    proposals[0][-1:] = [(token + 1) % vocab_size for token in proposals[0][-1:]]
    given = verify_on_gpu(logits, verify_rows(proposals), sampling, tiling=one_block(vocab_size))
    assert given.accepted_counts.tolist() == [max(0, depths[0] - 1), *depths[1:]]
    assert_same(given, verify_reference(logits, verify_rows(proposals), sampling))


@pytest.mark.parametrize("kind", ["normal", "ties", "tail without mass", "masked", "equal", "signed zeros", "extreme"])
@pytest.mark.filterwarnings("ignore:overflow encountered")  # bounds of extreme logits are infinite, as they may be
def test_ids_equal_the_references_under_every_filter(verify_rows, kind: str) -> None:
    sampling = all_filters(0.01 if kind in ("ties", "extreme") else 1.0)
    logits, rows = logit_table(700, len(sampling.seed), kind), verify_rows([[] for _ in sampling.seed])
    # Several blocks and parts, the last of them short.
    given = verify_on_gpu(logits, rows, sampling, tiling=Tiling(block=256, sum_block=128, processors=5))
    assert_same(given, verify_reference(logits, rows, sampling))


@pytest.mark.parametrize("kind", ["normal", "equal"])
def test_rows_with_more_candidates_than_there_is_room_for_are_searched_whole(verify_rows, kind: str) -> None:
    cases = [(0, 0.9, 0.0), (100, 1.0, 0.0), (100, 0.5, 0.0), (0, 1.0, 0.01), (100, 0.9, 0.01)]
    sampling = SamplingRows(
        np.full(len(cases), 2.0),
        np.array([top_k for top_k, _, _ in cases], np.int32),
        np.array([top_p for _, top_p, _ in cases]),
        np.array([min_p for _, _, min_p in cases]),
        np.arange(len(cases), dtype=np.uint64),
    )
    logits, rows = logit_table(700, len(cases), kind), verify_rows([[] for _ in cases])
    little = Tiling(block=1024, sum_block=1024, room=32, processors=1)
    assert_same(verify_on_gpu(logits, rows, sampling, tiling=little), verify_reference(logits, rows, sampling))


def test_a_row_alone_emits_what_it_emits_among_others(verify_rows) -> None:
    sampling = all_filters(0.7)
    count = len(sampling.seed)
    logits, rows = logit_table(700, count, "normal"), verify_rows([[] for _ in range(count)])
    together = verify_on_gpu(logits, rows, sampling, tiling=one_block(700))
    for row in range(0, count, 3):
        alone = VerifyRows(np.array([0, 1], np.int32), rows.proposed, rows.first_position[row : row + 1])
        one = SamplingRows(*(values[row : row + 1] for values in sampling))
        assert verify_on_gpu(logits[row : row + 1], alone, one).emitted[0] == together.emitted[row]


def test_proposing_one_id_again_and_again_changes_nothing(sampling_rows, verify_rows) -> None:
    logits = logit_table(64, 8, "normal")
    truth = verify(logits, verify_rows([[] for _ in range(8)]), sampling_rows(8, 0.0)).emitted
    rows = verify_rows([[int(truth[0])] * 7])
    given = verify_on_gpu(logits, rows, sampling_rows(1, 0.0))
    assert given.accepted_counts.tolist() == [1]
    assert given.emitted.tolist() == [*truth[:2].tolist(), *[-1] * 6]


def test_seeds_and_positions_take_their_whole_range(sampling_rows, verify_rows) -> None:
    logits = logit_table(700, 3, "normal")
    sampling = sampling_rows(3)._replace(seed=np.array([2**64 - 1, 2**63, 0], np.uint64))
    rows = verify_rows([[], [], []])._replace(first_position=np.array([0, 2**31 - 1, 2**40], np.int64))
    assert_same(verify_on_gpu(logits, rows, sampling), verify_reference(logits, rows, sampling))


def test_logits_may_be_a_strided_view(sampling_rows, verify_rows) -> None:
    rows, sampling = verify_rows([[3], [], []]), sampling_rows(3)
    for logits in (logit_table(700, 8, "normal")[::2], logit_table(4, 700, "normal").T[:4]):
        assert_same(verify_on_gpu(logits, rows, sampling), verify_reference(logits, rows, sampling))


@pytest.mark.parametrize("bad", [[torch.nan, 0, 0], [0, torch.inf, 0], [-torch.inf] * 3])
@pytest.mark.parametrize(("temperature", "top_k"), [(0.0, 0), (1.0, 0), (1.0, 2)])
def test_bad_logits_are_refused_with_their_row_named(
    sampling_rows, verify_rows, bad: list[float], temperature: float, top_k: int
) -> None:
    logits = torch.zeros(5, 3)
    logits[3] = torch.tensor(bad)
    rows = verify_rows([[1], [2], []])
    with pytest.raises(ValueError, match=r"in row 1$"):
        verify_on_gpu(logits, rows, sampling_rows(3, temperature, top_k))
    assert find_bad_rows_on_gpu(logits, rows.logit_starts).tolist() == [1]


def test_bad_rows_are_those_that_the_host_finds() -> None:
    logits = torch.randn(7, 50, generator=torch.Generator().manual_seed(1))
    logits[1, 3], logits[4, 49], logits[5, :40], logits[6] = torch.nan, torch.inf, -torch.inf, -torch.inf
    starts = np.array([0, 2, 4, 5, 6, 7], np.int32)
    assert find_bad_rows_on_gpu(logits, starts).tolist() == find_bad_rows(logits, starts).tolist() == [0, 2, 4]
    assert find_bad_rows_on_gpu(torch.zeros(0, 50), np.zeros(1, np.int32)).tolist() == []


def test_proposed_ids_out_of_range_and_logits_that_no_kernel_can_reach_are_refused(
    sampling_rows, verify_rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ValueError, match=r"expected proposed in \[0, 4\), given 4"):
        verify_on_gpu(torch.zeros(2, 4), verify_rows([[4]]), sampling_rows(1))
    monkeypatch.delenv("TRITON_INTERPRET")
    with pytest.raises(ValueError, match="expected logits on a GPU, given cpu"):
        verify_on_gpu(torch.zeros(2, 4), verify_rows([[1]]), sampling_rows(1))


def test_no_rows_give_an_empty_result() -> None:
    empty = np.zeros(0)
    rows = VerifyRows(np.zeros(1, np.int32), np.zeros(0, np.int32), np.zeros(0, np.int64))
    sampling = SamplingRows(empty, np.zeros(0, np.int32), empty, empty, np.zeros(0, np.uint64))
    result = verify_on_gpu(torch.zeros(0, 7), rows, sampling)
    assert result.accepted_counts.shape == result.emitted.shape == (0,)
