"""vLLM's table of depths by batch size: its meaning, and every way to get it wrong."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from outrider_doubles.depth_replay import exact_view

from outrider_runtime.errors import InvalidConfig
from outrider_target.control.table_policy import TablePolicy, parse_table
from outrider_target.control.views import Reason, StepView


def depths(entries: Sequence[Sequence[int]], sizes: Sequence[int], max_depth: int = 8) -> list[int]:
    policy = TablePolicy(parse_table(entries), max_depth, max_rows=64)
    return [policy.decide(exact_view(dict.fromkeys(range(size), (0.5,) * 8))).level for size in sizes]


def test_ranges_include_both_ends() -> None:
    assert depths([[1, 4, 5], [5, 8, 2], [9, 16, 0]], [1, 4, 5, 8, 9, 16]) == [5, 5, 2, 2, 0, 0]


def test_gaps_and_the_tail_go_on_with_the_depth_before() -> None:
    assert depths([[1, 2, 5], [9, 10, 3]], [2, 3, 8, 9, 11, 64, 65, 500]) == [5, 5, 5, 3, 3, 3, 3, 3]


def test_depths_beyond_the_configured_one_are_cut_to_it() -> None:
    assert depths([[1, 4, 9], [5, 8, 2]], [1, 5], max_depth=4) == [4, 2]


def test_order_does_not_matter() -> None:
    assert depths([[5, 8, 1], [1, 4, 3]], [1, 8]) == [3, 1]


def test_no_row_goes_beyond_its_own_limit() -> None:
    decision = TablePolicy(parse_table([[1, 9, 5]]), 8, 64).decide(exact_view({0: (0.5,) * 8}, limit=2))
    assert (decision.depth(0), decision.level, decision.reason) == (2, 5, Reason.TABLE)


def test_without_decode_rows_there_is_nothing_to_decide() -> None:
    assert TablePolicy(parse_table([[1, 9, 5]]), 8, 64).decide(StepView(())).reason is Reason.IDLE


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ([], "the table is empty"),
        ([[2, 4, 1]], "the first range starts at 2; it must start at 1"),
        ([[0, 4, 1]], "batch sizes begin at 1"),
        ([[1, 4, 1], [8, 6, 1]], r"end 6 lies before start 8"),
        ([[1, 4, -1]], "must be 0"),
        ([[1, 4, 1], [4, 8, 1]], r"\[1, 4\] and \[4, 8\] overlap; end the first at 3"),
        ([[1, 4]], r"expected \[start, end, depth\]"),
        ([[1, 4, 2.0]], "expected three integers"),
        ([[1, 4, True]], "expected three integers"),
        (["142"], r"expected \[start, end, depth\]"),
    ],
)
def test_a_malformed_table_is_refused_with_the_entry_and_the_fix(entries: Sequence[Sequence[int]], words: str) -> None:
    with pytest.raises(InvalidConfig, match=f"num_speculative_tokens_per_batch_size.*{words}"):
        parse_table(entries)
