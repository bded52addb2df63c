"""The ratio rules on CPUs against their reference: ids exactly equal, whatever the shapes, filters and laws."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

from outrider_kernels.contracts import PADDING_ID, SamplingRows, VerifyRows
from outrider_kernels.draft_rows import MAX_WEIGHT, DraftRows, certain
from outrider_kernels.logits_rows import RowChange, stack_changes
from outrider_kernels.ratio_reference import verify_by_ratio_reference
from outrider_kernels.ratio_verify import verify_by_ratio
from outrider_kernels.verify import find_exhausted_rows

MakeSampling = Callable[..., SamplingRows]
MakeRows = Callable[..., VerifyRows]


def drawn_rows(
    source: np.random.Generator, depths: list[int], vocab_size: int, listed: int, make_rows: MakeRows
) -> tuple[VerifyRows, DraftRows]:
    """Proposals drawn from laws of up to `listed` ids; every fourth one was certain."""
    proposals, starts, ids, weights = [], [0], [], []
    for depth in depths:
        row = []
        for _ in range(depth):
            size = min(int(source.integers(1, listed + 1)), vocab_size)
            support = source.choice(vocab_size, size, replace=False)
            weight = source.integers(1, MAX_WEIGHT + 1, size)
            row.append(int(source.choice(support, p=weight / weight.sum())))
            if source.random() < 0.75:
                ids += support.tolist()
                weights += weight.tolist()
            starts.append(len(ids))
        proposals.append(row)
    return make_rows(proposals), DraftRows(np.int32(starts), np.int32(ids), np.int64(weights))


CASES = [
    pytest.param(5, [0, 1, 3, 7, 2], {}, 3, id="smallest vocabulary, ragged, a row of depth 0"),
    pytest.param(64, [4, 4], {"temperature": 0.0}, 8, id="greedy"),
    pytest.param(65, [4, 1, 6], {"top_p": 0.8}, 8, id="top-p at one more than a block of ids"),
    pytest.param(1000, [7, 7], {"top_k": 3, "temperature": 0.7}, 64, id="top-k below the listed ids"),
    pytest.param(8193, [2, 5], {"min_p": 0.02, "temperature": 1.5}, 128, id="min-p, the longest law"),
    pytest.param(49152, [3], {"temperature": 2.0, "top_p": 0.95, "top_k": 50}, 64, id="a real vocabulary, all filters"),
    pytest.param(32000, [7, 0], {"top_k": 40}, 32, id="a deep row of Llama 2's"),
    pytest.param(151936, [7], {"top_p": 0.9}, 16, id="a deep row of Qwen's, no power of two"),
    pytest.param(262144, [1], {"min_p": 0.01}, 16, id="the largest in use"),
]


@pytest.mark.parametrize("block", [False, True])
@pytest.mark.parametrize(("vocab_size", "depths", "filters", "listed"), CASES)
def test_the_compiled_rule_emits_the_ids_of_the_reference(
    vocab_size: int,
    depths: list[int],
    filters: dict[str, float],
    listed: int,
    block: bool,
    sampling_rows: MakeSampling,
    verify_rows: MakeRows,
) -> None:
    source = np.random.default_rng(vocab_size)
    for trial in range(1 if vocab_size > 10000 else 12):
        rows, draft = drawn_rows(source, depths, vocab_size, listed, verify_rows)
        logits = torch.from_numpy(source.standard_normal((int(rows.logit_starts[-1]), vocab_size)).astype(np.float32))
        for place, token in enumerate(rows.proposed):  # so that some are accepted
            logits[
                place + np.searchsorted(rows.logit_starts[1:] - 1 - np.arange(len(depths)), place, "right"), token
            ] += 4
        sampling = sampling_rows(len(depths), first_seed=100 * trial, **filters)
        expected = verify_by_ratio_reference(logits, rows, sampling, draft, block=block)
        result = verify_by_ratio(logits, rows, sampling, draft, block=block)
        assert result.accepted_counts.tolist() == expected.accepted_counts.tolist()
        assert result.emitted.tolist() == expected.emitted.tolist()


@pytest.mark.parametrize("block", [False, True])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_logits_are_read_as_float32(
    dtype: torch.dtype, block: bool, sampling_rows: MakeSampling, verify_rows: MakeRows
) -> None:
    rows, draft = drawn_rows(np.random.default_rng(0), [3, 2], 40, 6, verify_rows)
    logits = torch.randn(7, 40, generator=torch.Generator().manual_seed(1)).to(dtype)
    sampling = sampling_rows(2)
    result = verify_by_ratio(logits, rows, sampling, draft, block=block)
    expected = verify_by_ratio_reference(logits.float(), rows, sampling, draft, block=block)
    assert result.emitted.tolist() == expected.emitted.tolist()


@pytest.mark.parametrize("block", [False, True])
def test_one_id_proposed_again_and_again_is_tested_at_every_place_anew(
    block: bool, sampling_rows: MakeSampling, verify_rows: MakeRows
) -> None:
    logits = torch.zeros(8, 3)
    logits[:, 1] = 2
    rows, accepted = verify_rows([[1] * 7]), set()
    for seed in range(40):
        result = verify_by_ratio(logits, rows, sampling_rows(1, first_seed=seed), certain(7), block=block)
        expected = verify_by_ratio_reference(logits, rows, sampling_rows(1, first_seed=seed), certain(7), block=block)
        assert result.emitted.tolist() == expected.emitted.tolist()
        accepted |= set(result.accepted_counts.tolist())
    assert {0, 1, 7} <= accepted


@pytest.mark.parametrize("block", [False, True])
def test_changes_see_the_proposals_before_a_position_and_no_others(
    block: bool, sampling_rows: MakeSampling, verify_rows: MakeRows
) -> None:
    source = np.random.default_rng(4)
    change = RowChange(
        repetition=1.4,
        presence=0.5,
        frequency=0.3,
        seen_ids=np.int32([1, 2]),
        seen_counts=np.int32([0, 2]),
        ending_positions=2,
        ending_ids=np.int32([0]),
        words=[np.int32([3, 4]), np.int32([7])],
        recent_ids=np.int32([3]),
    )
    changes = stack_changes([change, None, change])
    for seed in range(60):
        rows, draft = drawn_rows(source, [4, 3, 5], 9, 4, verify_rows)
        logits = torch.from_numpy(source.standard_normal((15, 9)).astype(np.float32))
        sampling = sampling_rows(3, first_seed=seed * 10)
        result = verify_by_ratio(logits, rows, sampling, draft, changes, block=block)
        expected = verify_by_ratio_reference(logits, rows, sampling, draft, changes, block=block)
        assert result.emitted.tolist() == expected.emitted.tolist()


@pytest.mark.parametrize("block", [False, True])
def test_a_row_ends_where_its_changes_leave_no_token(
    block: bool, sampling_rows: MakeSampling, verify_rows: MakeRows
) -> None:
    rows = verify_rows([[1, 2], [1]])
    logits = torch.full((5, 4), -torch.inf)
    logits[0, 1], logits[1, 3], logits[2, 0], logits[3, 1], logits[4, 2] = 0, 0, 0, 0, 0
    banned = RowChange(words=[np.int32([1, 3])])  # after 1 only 3 has a finite logit, and may not come
    changes = stack_changes([banned, None])
    result = verify_by_ratio(logits, rows, sampling_rows(2), certain(3), changes, block=block)
    assert result.accepted_counts.tolist() == [1, 1]
    assert result.emitted.tolist() == [1, PADDING_ID, PADDING_ID, 1, 2]
    assert find_exhausted_rows(rows, result).tolist() == [0]


def test_at_temperature_zero_every_rule_decodes_greedily(sampling_rows: MakeSampling, verify_rows: MakeRows) -> None:
    source = np.random.default_rng(5)
    for block in (False, True):
        rows, draft = drawn_rows(source, [3, 4], 6, 4, verify_rows)
        logits = torch.from_numpy(source.standard_normal((9, 6)).astype(np.float32))
        result = verify_by_ratio(logits, rows, sampling_rows(2, temperature=0.0), draft, block=block)
        best = logits.argmax(1).tolist()
        for row, accepted in enumerate(result.accepted_counts):
            start = rows.logit_starts[row]
            assert result.emitted[start : start + accepted + 1].tolist() == best[start : start + accepted + 1]


def test_a_row_does_not_depend_on_its_neighbours(sampling_rows: MakeSampling, verify_rows: MakeRows) -> None:
    rows, draft = drawn_rows(np.random.default_rng(6), [3, 5, 2], 30, 5, verify_rows)
    logits = torch.randn(13, 30, generator=torch.Generator().manual_seed(2))
    sampling = sampling_rows(3)
    together = verify_by_ratio(logits, rows, sampling, draft, block=True)
    span = slice(int(draft.starts[3]), int(draft.starts[8]))
    alone = verify_by_ratio(
        logits[4:10],
        VerifyRows(np.int32([0, 6]), rows.proposed[3:8], rows.first_position[1:2]),
        SamplingRows(*(values[1:2] for values in sampling)),
        DraftRows(draft.starts[3:9] - draft.starts[3], draft.ids[span], draft.weights[span]),
        block=True,
    )
    assert together.emitted[4:10].tolist() == alone.emitted.tolist()


def law(starts: list[int], ids: list[int], weights: list[int]) -> DraftRows:
    return DraftRows(np.int32(starts), np.int32(ids), np.int64(weights))


WRONG = [
    pytest.param(law([0, 1], [1], [1]), "starts of 2 laws", id="a law is missing"),
    pytest.param(law([0, 2, 3], [1, 1, 2], [1, 1, 1]), "distinct", id="the same id twice"),
    pytest.param(law([0, 2, 2], [0, 3], [1, 1]), "in its own law", id="the proposed id is not listed"),
    pytest.param(law([0, 1, 1], [1], [0]), "weights in", id="no weight"),
    pytest.param(law([0, 1, 1], [1], [MAX_WEIGHT + 1]), "weights in", id="more than 32 bits"),
    pytest.param(law([0, 2, 2], [1, 4], [1, 1]), "listed ids in", id="an id outside the vocabulary"),
    pytest.param(law([0, 2, 2], [1, -1], [1, 1]), "listed ids in", id="a negative id"),
    pytest.param(law([0, 1, 1], [1, 2], [1, 1]), "rising from 0", id="ids that belong to no law"),
    pytest.param(law([0, 2, 2], [1, 2], [1]), "weights as many", id="fewer weights than ids"),
]


@pytest.mark.parametrize(("draft", "message"), WRONG)
def test_laws_that_are_none_are_refused(
    draft: DraftRows, message: str, sampling_rows: MakeSampling, verify_rows: MakeRows
) -> None:
    with pytest.raises(ValueError, match=message):
        verify_by_ratio(torch.zeros(3, 4), verify_rows([[1, 2]]), sampling_rows(1), draft)


def test_a_law_may_not_be_longer_than_the_bound(sampling_rows: MakeSampling, verify_rows: MakeRows) -> None:
    draft = law([0, 129], list(range(129)), [1] * 129)
    with pytest.raises(ValueError, match="at most 128 ids"):
        verify_by_ratio(torch.zeros(2, 300), verify_rows([[1]]), sampling_rows(1), draft)


def test_bad_logits_are_refused_with_their_row(sampling_rows: MakeSampling, verify_rows: MakeRows) -> None:
    logits = torch.zeros(4, 3)
    logits[3, 1] = torch.nan
    for verify in (verify_by_ratio, verify_by_ratio_reference):
        with pytest.raises(ValueError, match="in row 1"):
            verify(logits, verify_rows([[1], [2]]), sampling_rows(2), certain(2))
