"""Pools are asked while they bring more than they cost, and never forgotten."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outrider_target.control.exploring import Exploring
from outrider_target.control.pool_arbiter import Choice, PoolArbiter

TOKEN_S = 0.020
SHARE = 0.05
CHEAP_S, DEAR_S = 0.001, 1.0


def play(
    arbiter: PoolArbiter, matched: Mapping[str, int], costs: Mapping[str, float], rounds: int, key: int = 1
) -> list[dict[str, Choice]]:
    """Rounds in which every asked pool has so many ids right."""
    choices = []
    for _ in range(rounds):
        choices.append(arbiter.choose(key, costs, TOKEN_S))
        arbiter.observe(key, {pool: matched[pool] for pool, it in choices[-1].items() if it is not Choice.SPARED})
    return choices


def test_unknown_pools_are_all_asked() -> None:
    choices = PoolArbiter(0.1, 16, SHARE).choose(1, {"a": CHEAP_S, "b": CHEAP_S, "c": CHEAP_S}, TOKEN_S)
    assert choices == {"a": Choice.BEST, "b": Choice.WORTH_IT, "c": Choice.WORTH_IT}


def test_a_pool_that_brings_nothing_is_spared_but_for_one_round_in_so_many() -> None:
    affordable_s = 8 * SHARE * TOKEN_S / 0.1
    choices = play(PoolArbiter(0.1, 8, SHARE), {"good": 4, "idle": 0}, {"good": CHEAP_S, "idle": affordable_s}, 400)
    found = Counter(round_["idle"] for round_ in choices[40:])
    assert set(found) == {Choice.SPARED, Choice.EXPLORED}
    assert found[Choice.EXPLORED] == 360 // 9
    assert all(round_["good"] is Choice.BEST for round_ in choices[10:])


@pytest.mark.parametrize(("cost_s", "sessions"), [(DEAR_S, 1), (DEAR_S, 5), (10 * DEAR_S, 5), (0.15, 3)])
def test_trying_a_dear_pool_costs_no_more_than_its_share_of_the_time_and_still_happens(
    cost_s: float, sessions: int
) -> None:
    arbiter, rounds, price = PoolArbiter(0.1, 8, SHARE), 2400, 0.1
    for key in range(sessions):  # what everybody knows already
        for _ in range(60):
            arbiter.observe(key, {"good": 4, "idle": 0})
    tries = 0
    for _ in range(rounds):
        for key in range(sessions):
            (choices,) = play(arbiter, {"good": 4, "idle": 0}, {"good": CHEAP_S, "idle": cost_s}, 1, key)
            tries += choices["idle"] is Choice.EXPLORED
    paid_for = SHARE * rounds * sessions * TOKEN_S / (price * cost_s)
    assert 0.8 * paid_for <= tries <= paid_for


def test_no_more_is_saved_up_than_some_tries_cost() -> None:
    exploring = Exploring(SHARE)
    for _ in range(10_000):
        exploring.save("cheap", TOKEN_S, price_s=2**-13)
    assert not exploring.try_again("cheap", price_s=0.1), "it became dear meanwhile"
    assert sum(exploring.try_again("cheap", price_s=2**-13) for _ in range(1000)) == 64


def test_pools_have_accounts_of_their_own() -> None:
    exploring = Exploring(SHARE)
    exploring.save("a", TOKEN_S, price_s=1e-4)
    assert not exploring.try_again("b", 1e-4)
    assert exploring.try_again("a", 1e-4)


def test_what_is_brought_is_weighed_against_the_price_of_drafting() -> None:
    # Two ids more than the other has, 20 ms each: worth 40 ms, at a price of 0.1 up to 400 ms of drafting.
    for cost_s, choice in ((0.3, Choice.WORTH_IT), (0.5, Choice.SPARED)):
        arbiter = PoolArbiter(0.1, 1000, SHARE)
        for key in range(200):
            matched = {"wide": 4, "deep": 0} if key % 2 else {"wide": 0, "deep": 4}
            arbiter.observe(1, matched)
        choices = arbiter.choose(1, {"wide": CHEAP_S, "deep": cost_s}, TOKEN_S)
        assert choices["deep"] is choice or choices["wide"] is choice
        assert Choice.BEST in choices.values()


def test_a_pool_that_recovers_is_found_again() -> None:
    arbiter = PoolArbiter(0.1, 8, SHARE)
    costs = {"a": 0.02, "b": 0.02}
    play(arbiter, {"a": 4, "b": 0}, costs, 300)
    late = play(arbiter, {"a": 0, "b": 4}, costs, 300)
    assert late[-1]["b"] is Choice.BEST
    first = next(index for index, round_ in enumerate(late) if round_["b"] is Choice.BEST)
    assert first <= 20 * 9


def test_a_price_of_nothing_asks_everybody_always() -> None:
    choices = play(PoolArbiter(0.0, 8, SHARE), {"a": 4, "b": 0}, {"a": CHEAP_S, "b": DEAR_S}, 200)
    assert all(Choice.SPARED not in round_.values() for round_ in choices)


def test_sessions_learn_for_themselves_and_teach_their_pools() -> None:
    arbiter = PoolArbiter(0.1, 1000, SHARE)
    costs = {"a": 0.5, "b": 0.5}
    play(arbiter, {"a": 4, "b": 0}, costs, 200, key=1)
    play(arbiter, {"a": 0, "b": 4}, costs, 60, key=2)
    assert arbiter.choose(1, costs, TOKEN_S)["a"] is Choice.BEST
    assert arbiter.choose(2, costs, TOKEN_S)["b"] is Choice.BEST
    arbiter.forget(1)
    arbiter.forget(2)
    arbiter.forget(3)
    assert len(arbiter) == 0


@given(
    st.lists(st.dictionaries(st.sampled_from("abc"), st.integers(0, 8), min_size=1), max_size=60),
    st.dictionaries(st.sampled_from("abc"), st.floats(0, 10), min_size=1),
    st.floats(0, 1),
    st.floats(0, 10),
)
def test_somebody_is_always_asked_and_the_choice_is_a_function_of_what_was_seen(
    seen: list[dict[str, int]], costs: dict[str, float], token_s: float, price: float
) -> None:
    arbiters = [PoolArbiter(price, 4, 1.0) for _ in range(2)]
    chosen = []
    for arbiter in arbiters:
        for matched in seen:
            arbiter.observe(1, matched)
        chosen.append([arbiter.choose(1, costs, token_s) for _ in range(12)])
    assert chosen[0] == chosen[1]
    for choices in chosen[0]:
        assert choices.keys() == costs.keys()
        assert list(choices.values()).count(Choice.BEST) == 1
    for pool, cost_s in costs.items():
        left_out = [choices[pool] is Choice.SPARED for choices in chosen[0]]
        if price * cost_s <= 3.9 * token_s:  # four rounds pay for it
            assert not any(all(left_out[start : start + 5]) for start in range(8))


@pytest.mark.parametrize("costs", [{}, {"only": DEAR_S}])
def test_nothing_and_one_pool(costs: dict[str, float]) -> None:
    assert PoolArbiter(1.0, 4, SHARE).choose(1, costs, TOKEN_S) == dict.fromkeys(costs, Choice.BEST)
