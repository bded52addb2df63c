"""Prompt lookup in Triton follows the one rule, whatever the contexts."""

from __future__ import annotations

import random

import pytest
import torch

from outrider_draft.config import LookupBounds
from outrider_draft.ngram_reference import propose_by_lookup
from outrider_kernels.contracts import PADDING_ID
from outrider_kernels.ngram_lookup import Proposals, look_up_reference
from outrider_kernels.triton_twins.ngram_lookup_triton import look_up

BOUNDS = [(1, 1), (2, 5), (3, 3), (1, 9)]


def adversarial() -> list[list[int]]:
    """Contexts that reward a mistake, with the mistake."""
    far = [7, 8, 9, *range(100, 1200)]
    return [
        [],  # nothing at all
        [5],  # the only occurrence is the end itself
        [5, 5],  # overlaps by all but one
        [3] * 40,  # every place matches, the first of the longest runs wins
        [1, 2] * 20,  # periods
        [1, 2, 3, 4, 9, 3, 4, 8, 2, 3, 4],  # a longer run later beats a shorter one earlier
        [4, 6, 4, 7, 4],  # of equal runs the earliest
        [9, 1, 2, 3, 5, 1, 2, 3],  # what follows ends before the depth
        [2, 3, 1, 2, 3],  # a run that starts at the first id
        [0, 0, 0, -1 % 2**31],  # padding must not look like an id
        [*far, 7, 8, 9],  # first occurrence in another program's share
        [*range(1022), 7777, 7778, 7779, 1, 7777, 7778],  # across the border of two shares
        [*range(1023), 4, 4],  # ends on the border
    ]


def batch(contexts: list[list[int]], filler: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Ids, padded, and lengths."""
    places = max(len(ids) for ids in contexts) + 3
    padded = [ids + [filler] * (places - len(ids)) for ids in contexts]
    return torch.tensor(padded, dtype=torch.int32), torch.tensor([len(ids) for ids in contexts], dtype=torch.int32)


def as_tuples(proposals: Proposals) -> list[tuple[int, ...]]:
    counts = proposals.counts.tolist()
    rows = proposals.proposed.tolist()
    assert all(set(row[count:]) <= {PADDING_ID} for row, count in zip(rows, counts, strict=True))
    return [tuple(row[:count]) for row, count in zip(rows, counts, strict=True)]


@pytest.mark.parametrize(("shortest", "longest"), BOUNDS)
@pytest.mark.parametrize("filler", [0, 3, PADDING_ID])
def test_adversarial_contexts_give_what_the_draft_worker_proposes(shortest: int, longest: int, filler: int) -> None:
    contexts = adversarial()
    depths = [index % 8 for index in range(len(contexts))]
    bounds = LookupBounds(shortest, longest)
    for shift in (0, 5):
        shifted = depths[shift:] + depths[:shift]
        arguments = (*batch(contexts, filler), torch.tensor(shifted, dtype=torch.int32), shortest, longest, 7)
        expected = [propose_by_lookup(ids, bounds, depth) for ids, depth in zip(contexts, shifted, strict=True)]
        assert as_tuples(look_up(*arguments)) == expected
        assert as_tuples(look_up_reference(*arguments)) == expected


@pytest.mark.parametrize("vocabulary", [2, 4, 30])
def test_random_contexts_give_what_the_draft_worker_proposes(vocabulary: int) -> None:
    source = random.Random(vocabulary)
    contexts = [source.choices(range(vocabulary), k=source.randrange(60)) for _ in range(40)]
    depths = [source.randrange(9) for _ in contexts]
    for shortest, longest in BOUNDS:
        arguments = (*batch(contexts, 1), torch.tensor(depths, dtype=torch.int32), shortest, longest, 8)
        bounds = LookupBounds(shortest, longest)
        expected = [propose_by_lookup(ids, bounds, depth) for ids, depth in zip(contexts, depths, strict=True)]
        assert as_tuples(look_up(*arguments)) == expected
        assert as_tuples(look_up_reference(*arguments)) == expected


def test_depths_beyond_the_width_count_as_the_width() -> None:
    ids, lengths = batch([[1, 2, 3, 4, 5, 1]], 0)
    assert as_tuples(look_up(ids, lengths, torch.tensor([9], dtype=torch.int32), 1, 2, 3)) == [(2, 3, 4)]


def test_an_empty_batch_proposes_nothing() -> None:
    none = torch.zeros(0, dtype=torch.int32)
    assert look_up(torch.zeros(0, 4, dtype=torch.int32), none, none, 1, 2, 3).proposed.shape == (0, 3)


@pytest.mark.parametrize(
    ("lengths", "bounds", "message"),
    [
        (torch.zeros(3, dtype=torch.int32), (1, 2), "expected 2 lengths and depths"),
        (torch.zeros(2), (1, 2), "contiguous int32"),
        (torch.zeros(2, dtype=torch.int32), (0, 2), "expected 1 <= shortest <= longest"),
        (torch.zeros(2, dtype=torch.int32), (3, 2), "given 3, 2 and 4"),
    ],
)
def test_arguments_outside_the_contract_are_refused(
    lengths: torch.Tensor, bounds: tuple[int, int], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        look_up(torch.zeros(2, 5, dtype=torch.int32), lengths, torch.zeros(2, dtype=torch.int32), *bounds, 4)
