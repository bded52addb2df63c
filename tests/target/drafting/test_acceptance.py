"""Running acceptance by pool and position."""

from __future__ import annotations

import pytest

from outrider_target.drafting.acceptance import Acceptance


def learned(pool: str, proposed: int, accepted: int, rounds: int = 500) -> Acceptance:
    acceptance = Acceptance(memory_rounds=64)
    for _ in range(rounds):
        acceptance.observe(pool, proposed, accepted)
    return acceptance


def test_the_expected_count_converges_to_what_is_observed() -> None:
    acceptance = learned("suffix", proposed=4, accepted=2)
    assert acceptance.expected_accepted("suffix", 4) == pytest.approx(2.0, abs=0.2)
    assert acceptance.expected_accepted("suffix", 1) == pytest.approx(1.0, abs=0.05)


def test_ids_after_the_first_rejected_one_say_nothing() -> None:
    unknown = Acceptance(memory_rounds=64)
    acceptance = learned("ngram", proposed=8, accepted=0)
    first = acceptance.expected_accepted("ngram", 1)
    assert first < 0.1
    prior = unknown.expected_accepted("ngram", 1)
    assert acceptance.expected_accepted("ngram", 2) == pytest.approx(first * (1 + prior))


def test_pools_learn_apart_and_an_unknown_pool_starts_from_the_prior() -> None:
    acceptance = learned("suffix", proposed=4, accepted=4)
    assert acceptance.expected_accepted("suffix", 4) > 3.5
    assert acceptance.expected_accepted("other", 4) == Acceptance(64).expected_accepted("other", 4)


def test_old_observations_fade() -> None:
    acceptance = learned("suffix", proposed=4, accepted=0)
    for _ in range(500):
        acceptance.observe("suffix", 4, 4)
    assert acceptance.expected_accepted("suffix", 4) > 3.5


def test_no_ids_are_worth_nothing() -> None:
    assert Acceptance(64).expected_accepted("suffix", 0) == 0.0
