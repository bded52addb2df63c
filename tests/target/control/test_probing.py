"""Probes: one row at a time, on time saved up, and on with the same row while that raises hopes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from outrider_target.control.acceptance_model import Curve
from outrider_target.control.probing import PROBE_DEPTH, PROBE_ROUNDS, Probing
from outrider_target.control.views import RowView

SHARE = 0.1
ROUND_S = 0.02
TOKEN_S = 0.001
PRICE_ROUNDS = PROBE_ROUNDS * PROBE_DEPTH * TOKEN_S / (SHARE * ROUND_S)
"""Plain rounds that pay for one probe."""


def rows(acceptance: float, presence: float = 1.0) -> list[RowView]:
    curve = Curve((acceptance,) * 8, (presence,) * 8)
    return [RowView(key, 8, curve, 100) for key in (1, 2, 3)]


def rounds_until_probe(probing: Probing, acceptance: float, presence: float = 1.0) -> int:
    """Plain rounds before the next probe begins; its first round is over then."""
    for count in range(10_000):
        if probing.choose(rows(acceptance, presence), 8, TOKEN_S, 0.0):
            return count
        probing.save(ROUND_S)
    raise AssertionError("never probed")


def probed_rounds(probing: Probing, acceptance: Callable[[int], float]) -> int:
    """Further rounds of the probe that goes on, of one row alone; `acceptance` is what is known in each of them."""
    for count in range(1, 10_000):
        chosen = probing.choose(rows(acceptance(count)), 8, TOKEN_S, 0.0)
        if not chosen:
            return count - 1
        assert len(chosen) == 1
    raise AssertionError("never ended")


def test_a_probe_waits_for_the_time_that_it_takes_and_asks_one_row_for_a_few_rounds() -> None:
    probing = Probing(SHARE)
    assert rounds_until_probe(probing, 0.0) == PRICE_ROUNDS
    assert probed_rounds(probing, lambda _: 0.0) == PROBE_ROUNDS - 1


def test_proposals_that_are_seldom_there_are_cheap_to_probe() -> None:
    assert rounds_until_probe(Probing(SHARE), 0.0, presence=1 / 3) == PRICE_ROUNDS / 3


def test_probes_that_raise_no_hopes_take_no_more_than_their_share() -> None:
    probing = Probing(SHARE)
    for _ in range(6):
        assert rounds_until_probe(probing, 0.0) == PRICE_ROUNDS
        probed_rounds(probing, lambda _: 0.0)


def test_a_probe_goes_on_with_its_row_while_hopes_rise_but_not_for_ever() -> None:
    probing = Probing(SHARE)
    rounds_until_probe(probing, 0.0)
    assert probed_rounds(probing, lambda count: min(0.9, 0.01 * count)) == 5 * PROBE_ROUNDS - 1
    assert rounds_until_probe(probing, 0.9) == PRICE_ROUNDS


def test_a_probe_whose_row_can_take_nothing_any_more_ends() -> None:
    probing = Probing(SHARE)
    rounds_until_probe(probing, 0.0)
    first, *others = rows(0.0)
    assert probing.choose([replace(first, limit=0), *others], 8, TOKEN_S, 0.0) == {}
    assert rounds_until_probe(probing, 0.0) == PRICE_ROUNDS


def test_a_probe_shrinks_to_the_room_of_a_later_step() -> None:
    probing = Probing(SHARE)
    rounds_until_probe(probing, 0.0)
    assert probing.choose(rows(0.0), 1, TOKEN_S, 0.0) == {1: 1}
    assert probing.choose(rows(0.0), 8, TOKEN_S, 0.0) == {1: PROBE_DEPTH}


def test_a_probe_whose_hopes_rise_no_more_ends() -> None:
    probing = Probing(SHARE)
    rounds_until_probe(probing, 0.0)
    assert probed_rounds(probing, lambda count: 0.1 if count >= PROBE_ROUNDS else 0.0) == 2 * PROBE_ROUNDS - 1
