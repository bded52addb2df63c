"""Laws of drawn ids: made of probabilities, drawn from as sent, and refused where they cannot be."""

from collections import Counter
from random import Random

import pytest
from scipy.stats import chisquare

from outrider_kernels.draft_rows import MAX_LISTED_IDS, MAX_WEIGHT
from outrider_wire.draft_law import MAX_LAW_IDS, MAX_LAW_WEIGHT, DraftLaw


def test_bounds_are_those_of_the_kernels() -> None:
    assert (MAX_LAW_IDS, MAX_LAW_WEIGHT) == (MAX_LISTED_IDS, MAX_WEIGHT)


def test_ids_are_drawn_by_their_weights() -> None:
    law, random = DraftLaw((7, 3, 5), (1, 2, 5)), Random(1)
    counts = Counter(law.draw(random.getrandbits(64)) for _ in range(40_000))
    assert chisquare([counts[7], counts[3], counts[5]], [5_000, 10_000, 25_000]).pvalue > 1e-3
    assert (law.draw(0), law.draw(2**64 - 1)) == (7, 5)


def test_a_law_of_probabilities_keeps_their_proportions_and_the_likeliest() -> None:
    law = DraftLaw.from_probabilities({4: 0.2, 9: 0.6, 2: 0.1, 8: 0.0})
    assert law.token_ids == (9, 4, 2)
    assert [weight / sum(law.weights) for weight in law.weights] == pytest.approx([6 / 9, 2 / 9, 1 / 9])
    assert law.confidence == pytest.approx(6 / 9)
    many = DraftLaw.from_probabilities({token: (token + 1) / 100_000 for token in range(300)})
    assert many.token_ids == tuple(range(299, 299 - MAX_LAW_IDS, -1))


@pytest.mark.parametrize(
    "probabilities",
    [{}, {1: 0.0}, {1: -0.1, 2: 0.5}, {1: float("nan")}, {1: float("inf")}, {1: 0.7, 2: 0.7}],
    ids=["none", "all zero", "negative", "NaN", "infinite", "more than one"],
)
def test_what_are_no_probabilities_make_no_law(probabilities: dict[int, float]) -> None:
    with pytest.raises(ValueError, match="expected probabilities"):
        DraftLaw.from_probabilities(probabilities)


WRONG_LAWS = {
    "fewer weights than ids": DraftLaw((1, 2), (1,)),
    "weights without ids": DraftLaw((), (1,)),
    "the same id twice": DraftLaw((1, 1), (1, 1)),
    "id equal to the vocabulary size": DraftLaw((1, 10), (1, 1)),
    "negative id": DraftLaw((1, -1), (1, 1)),
    "no weight": DraftLaw((1, 2), (1, 0)),
    "more than 32 bits": DraftLaw((1, 2), (1, MAX_LAW_WEIGHT + 1)),
    "without the proposed id": DraftLaw((2, 3), (1, 1)),
    "too many ids": DraftLaw(tuple(range(MAX_LAW_IDS + 1)), (1,) * (MAX_LAW_IDS + 1)),
}


@pytest.mark.parametrize("law", WRONG_LAWS.values(), ids=WRONG_LAWS)
def test_a_law_that_cannot_be_does_not_admit_an_id(law: DraftLaw) -> None:
    vocab_size = 10 if len(law.token_ids) <= MAX_LAW_IDS else 1000
    assert not law.admits(1, vocab_size)


def test_laws_that_can_be_do() -> None:
    assert DraftLaw().admits(1, 10)
    assert DraftLaw((9, 1, 0), (1, MAX_LAW_WEIGHT, 5)).admits(1, 10)
