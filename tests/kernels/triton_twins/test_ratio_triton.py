"""The ratio rules in Triton emit exactly the ids of their reference, on tables chosen to part them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from outrider_doubles.logit_tables import draft_laws, likely_rows, logit_table
from outrider_doubles.random_rows import any_rows, ints, random_change, random_sampling

from outrider_kernels.contracts import SamplingRows, VerifyResult, VerifyRows
from outrider_kernels.draft_rows import MAX_LISTED_IDS, DraftRows, certain
from outrider_kernels.logits_rows import LogitsRows, RowChange, stack_changes
from outrider_kernels.ratio_reference import verify_by_ratio_reference
from outrider_kernels.triton_twins.ratio import verify_by_ratio_on_gpu
from outrider_kernels.triton_twins.tiling import Tiling
from outrider_kernels.verify import find_exhausted_rows

# Several blocks and parts, the last of them short.
PIECES = Tiling(block=256, sum_block=128, processors=5)


def whole(vocab_size: int) -> Tiling:
    """Interpreted programs take nearly as long for few ids as for many."""
    block = max(1024, 1 << (vocab_size - 1).bit_length())
    return Tiling(block=block, sum_block=min(block, 1 << 17), processors=1)


def assert_the_references_ids(
    logits: torch.Tensor,
    rows: VerifyRows,
    sampling: SamplingRows,
    draft: DraftRows,
    tiling: Tiling,
    changes: LogitsRows | None = None,
    rules: tuple[bool, ...] = (False, True),
) -> VerifyResult:
    """By both rules, block verification being the last; returns what the last one gives."""
    for block in rules:
        expected = verify_by_ratio_reference(logits, rows, sampling, draft, changes, block=block)
        result = verify_by_ratio_on_gpu(logits, rows, sampling, draft, changes, tiling, block=block)
        assert result.accepted_counts.tolist() == expected.accepted_counts.tolist()
        assert result.emitted.tolist() == expected.emitted.tolist()
    return result


@pytest.mark.parametrize(
    ("vocab_size", "depths", "filters", "listed", "dtype"),
    [
        (5, [0, 1, 7], {}, 5, torch.float32),  # a row that proposes nothing, laws that list everything
        (5, [64], {}, 3, torch.bfloat16),  # the deepest row that fits the usual compiled form
        (8193, [1, 7], {"top_p": 0.8}, 20, torch.float32),  # one id more than whole blocks
        (32000, [1, 0], {"top_k": 40, "min_p": 0.01}, MAX_LISTED_IDS, torch.float16),  # the longest laws
        (49152, [2], {"top_p": 0.95, "top_k": 50, "temperature": 2.0}, 64, torch.bfloat16),  # all filters
        (151936, [1], {"min_p": 0.02}, 8, torch.bfloat16),  # Qwen's, no power of two, nothing to cut
        (262144, [0], {"top_k": 64}, 8, torch.float32),  # the largest in use: a span is one of 4096
        (262144, [7], {"top_k": 64}, 8, torch.bfloat16),  # the same, deep
    ],
)
def test_ids_equal_the_references_over_shapes(
    sampling_rows, vocab_size: int, depths: list[int], filters: dict[str, float], listed: int, dtype: torch.dtype
) -> None:
    source = np.random.default_rng(vocab_size)
    logits = logit_table(vocab_size, sum(depths) + len(depths), "normal", dtype)
    rows = likely_rows(source, logits, depths)
    at = np.arange(len(rows.proposed)) + np.repeat(np.arange(len(depths)), depths)
    logits[at, rows.proposed.astype(np.int64)] += 4  # likely, yet not sure
    draft = draft_laws(source, rows, vocab_size, listed)
    assert_the_references_ids(logits, rows, sampling_rows(len(depths), **filters), draft, whole(vocab_size))


@pytest.mark.parametrize("kind", ["normal", "ties", "tail without mass", "masked", "equal", "signed zeros", "extreme"])
def test_ids_equal_the_references_under_every_filter(kind: str) -> None:
    filters = [
        # temperature, top_k, top_p, min_p
        (0.0, 0, 1.0, 0.0),
        (1.0, 0, 1.0, 0.0),
        (1.0, 1, 1.0, 0.0),
        (1.0, 50, 1.0, 0.0),
        (1.0, 0, 0.9, 0.0),
        (1.0, 0, 1e-9, 0.0),  # only the likeliest is left
        (0.7, 20, 0.8, 0.0),
        (1.0, 0, 1.0, 1.0),  # the likeliest, and what ties with it
        (1.0, 7, 0.7, 0.1),
    ]
    source, count = np.random.default_rng(7), len(filters)
    temperature, top_k, top_p, min_p = (np.array(column) for column in zip(*filters, strict=True))
    sampling = SamplingRows(temperature, top_k.astype(np.int32), top_p, min_p, np.arange(count, dtype=np.uint64))
    depths = [row % 2 for row in range(count)]
    logits = logit_table(700, sum(depths) + count, kind)
    rows = likely_rows(source, logits, depths)
    # Both rules read the same laws, and these are what is looked at here.
    assert_the_references_ids(logits, rows, sampling, draft_laws(source, rows, 700, 40), PIECES, rules=(False,))


def test_rows_with_more_candidates_than_there_is_room_for_are_searched_whole() -> None:
    cases = [(0, 0.9, 0.0), (100, 1.0, 0.0), (100, 0.5, 0.0), (100, 0.9, 0.01)]
    top_k, top_p, min_p = (np.array(column) for column in zip(*cases, strict=True))
    sampling = SamplingRows(np.full(4, 2.0), top_k.astype(np.int32), top_p, min_p, np.arange(4, dtype=np.uint64))
    source, logits = np.random.default_rng(8), logit_table(700, 8, "normal")
    rows = likely_rows(source, logits, [1] * 4)
    little = Tiling(block=1024, sum_block=1024, room=32, processors=1)
    assert_the_references_ids(logits, rows, sampling, draft_laws(source, rows, 700, 9), little)


def test_changes_see_the_proposals_before_a_position_and_no_others() -> None:
    accepted, exhausted = 0, 0
    for chance in range(10):
        source = np.random.default_rng(chance)
        vocab_size = int(source.integers(3, 10))
        depths, logits, rows = any_rows(source, vocab_size, most_rows=4, deepest=3)
        changes = stack_changes(
            [with_masks(source, vocab_size, int(depth) + 1) if source.random() < 0.8 else None for depth in depths]
        )
        draft = draft_laws(source, rows, vocab_size, 4)
        sampling = random_sampling(source, len(depths))
        rules = (chance % 2 == 0,)
        result = assert_the_references_ids(logits, rows, sampling, draft, Tiling(processors=2), changes, rules)
        accepted += int(result.accepted_counts.sum())
        exhausted += len(find_exhausted_rows(rows, result))
    assert accepted > 0 and exhausted > 0


def with_masks(source: np.random.Generator, vocab_size: int, positions: int) -> RowChange:
    """Any changes, those among them that may leave nothing; sometimes masks by position."""
    change = random_change(source, vocab_size, safe=0)
    if source.random() < 0.6:
        return change
    bits = source.random((positions, -(-vocab_size // 32) * 32)) < 0.8
    return change._replace(masks=np.packbits(bits, axis=1, bitorder="little").view(np.uint32))


def test_changed_ids_count_beside_blocks_of_others(sampling_rows) -> None:
    source, logits = np.random.default_rng(3), logit_table(1500, 6, "normal")
    rows = likely_rows(source, logits, [2, 2])
    change = RowChange(presence=1.5, bias_ids=ints(1, 1499), bias_values=np.array([9.0, 9.5]), ending_ids=ints(7))
    changes, draft = stack_changes([change, None]), draft_laws(source, rows, 1500, 30)
    assert_the_references_ids(logits, rows, sampling_rows(2, top_p=0.9), draft, PIECES, changes)


def test_a_row_ends_where_its_changes_leave_no_token_and_its_neighbours_do_not_notice(
    sampling_rows, verify_rows
) -> None:
    logits = torch.full((5, 4), -torch.inf)
    logits[0, 1], logits[1, 3], logits[2, 0], logits[3, 1], logits[4, 2] = 0, 0, 0, 0, 0
    changes = stack_changes([RowChange(words=[ints(1, 3)]), None])  # after 1 only 3 has a finite logit
    rows = verify_rows([[1, 2], [1]])
    result = assert_the_references_ids(logits, rows, sampling_rows(2), certain(3), PIECES, changes)
    assert result.emitted.tolist() == [1, -1, -1, 1, 2]
    assert find_exhausted_rows(rows, result).tolist() == [0]


def test_one_id_proposed_again_and_again_is_tested_at_every_place(sampling_rows, verify_rows) -> None:
    logits = torch.zeros(8, 6)
    logits[:, 3] = 3.0
    for seed in range(3):
        rows, sampling = verify_rows([[3] * 7]), sampling_rows(1, first_seed=seed)
        assert_the_references_ids(logits, rows, sampling, certain(7), PIECES)


def test_a_drafter_equal_to_the_target_is_always_accepted(sampling_rows, verify_rows) -> None:
    rows = verify_rows([[1, 0]])
    draft = DraftRows(ints(0, 2, 4), ints(0, 1, 0, 1), np.array([7, 7, 7, 7], np.int64))
    for seed in range(3):
        given = assert_the_references_ids(torch.zeros(3, 2), rows, sampling_rows(1, first_seed=seed), draft, PIECES)
        assert given.accepted_counts.tolist() == [2]


def test_logits_may_be_a_strided_view(sampling_rows) -> None:
    source = np.random.default_rng(5)
    for logits in (logit_table(700, 6, "normal")[::2], logit_table(3, 700, "normal").T[:3]):
        rows = likely_rows(source, logits, [2])
        draft = draft_laws(source, rows, logits.shape[1], 3)
        assert_the_references_ids(logits, rows, sampling_rows(1), draft, PIECES)


@pytest.mark.parametrize("bad", [[torch.nan, 0, 0], [0, torch.inf, 0], [-torch.inf] * 3])
@pytest.mark.parametrize("filters", [{"temperature": 0.0}, {}, {"top_k": 2}, {"top_p": 0.9}])
def test_bad_logits_are_refused_with_their_row(
    sampling_rows, verify_rows, bad: list[float], filters: dict[str, float]
) -> None:
    logits = torch.zeros(5, 3)
    logits[3] = torch.tensor(bad)
    rows = verify_rows([[1], [2], []])
    with pytest.raises(ValueError, match=r"in row 1$"):
        verify_by_ratio_on_gpu(logits, rows, sampling_rows(3, **filters), certain(2), tiling=PIECES)


@pytest.mark.parametrize("token", [-1, 4])
def test_proposed_ids_outside_the_vocabulary_are_refused(sampling_rows, verify_rows, token: int) -> None:
    with pytest.raises(ValueError, match=rf"proposed in \[0, 4\), given {token}"):
        verify_by_ratio_on_gpu(torch.zeros(2, 4), verify_rows([[token]]), sampling_rows(1), certain(1))


def test_no_rows_give_an_empty_result(sampling_rows) -> None:
    rows = VerifyRows(np.zeros(1, np.int32), ints(), np.zeros(0, np.int64))
    result = verify_by_ratio_on_gpu(torch.zeros(0, 7), rows, sampling_rows(0), certain(0))
    assert result.accepted_counts.shape == result.emitted.shape == (0,)
