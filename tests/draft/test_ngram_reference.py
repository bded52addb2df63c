"""The specification of prompt lookup, case by case."""

from __future__ import annotations

import pytest

from outrider_draft.config import LookupBounds
from outrider_draft.ngram_reference import propose_by_lookup


@pytest.mark.parametrize(
    ("ids", "bounds", "depth", "expected", "why"),
    [
        ([1, 2, 3, 4, 2, 3], (2, 3), 4, [4, 2, 3], "vLLM's own example: the sequence ends before the depth"),
        ([1, 2, 9, 1, 2, 8, 1, 2], (2, 2), 1, [9], "the earliest occurrence wins, not the last"),
        ([7, 1, 2, 5, 1, 2, 6, 7, 1, 2], (2, 3), 1, [5], "the longest run wins: 7 1 2 before 1 2"),
        ([1, 2, 5, 7, 1, 2, 6, 7, 1, 2], (2, 3), 1, [6], "also when a shorter run occurs earlier"),
        ([1, 1, 1, 1], (2, 2), 3, [1, 1], "occurrences may overlap the run itself"),
        ([1, 2, 3], (2, 2), 4, [], "nothing occurs twice"),
        ([1, 2, 1], (2, 5), 4, [], "one id in common is too short"),
        ([1, 2, 1], (1, 5), 4, [2, 1], "unless the shortest run is one id"),
        ([4], (1, 1), 4, [], "a single id has no earlier one"),
        ([], (1, 1), 4, [], "nothing committed"),
        ([5, 5], (1, 3), 9, [5], "bounds may exceed the sequence"),
    ],
)
def test_lookup_proposes(ids: list[int], bounds: tuple[int, int], depth: int, expected: list[int], why: str) -> None:
    assert list(propose_by_lookup(ids, LookupBounds(*bounds), depth)) == expected, why
