"""What is expected of proposals: learned from outcomes, and in what order positions are worth asking for."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outrider_target.control.acceptance_model import AcceptanceModel, Curve, DraftOutcome

shares = st.floats(0.0, 1.0)


def test_where_every_id_is_there_a_position_is_worth_what_survives() -> None:
    curve = Curve((0.9, 0.5, 0.5), (1.0, 1.0, 1.0))
    assert curve.survival == pytest.approx((0.9, 0.45, 0.225))
    assert curve.worth == pytest.approx(curve.survival)


def test_a_position_that_pays_better_counts_with_those_before_it() -> None:
    curve = Curve((0.4, 0.75, 1.0, 0.1), (0.8, 0.3, 0.3, 0.3))  # survival 0.4, 0.3, 0.3, 0.03
    together = (0.4 + 0.3 + 0.3) / (0.8 + 0.3 + 0.3)
    assert curve.worth == pytest.approx((together, together, together, 0.03 / 0.3))


def test_nothing_is_worth_nothing() -> None:
    assert Curve((0.0, 0.0), (0.0, 0.0)).worth == (0.0, 0.0)
    assert Curve((), ()).worth == ()


@given(st.lists(st.tuples(shares, shares), max_size=8))
def test_worth_never_rises_and_is_a_share(pairs: list[tuple[float, float]]) -> None:
    worth = Curve(tuple(a for a, _ in pairs), tuple(p for _, p in pairs)).worth
    assert len(worth) == len(pairs)
    assert all(0.0 <= share <= 1.0 for share in worth)
    assert all(later <= earlier for earlier, later in pairwise(worth))


def test_long_proposals_that_are_right_beside_short_ones_that_are_not_bring_what_they_bring() -> None:
    model = AcceptanceModel(4)
    for round_number in range(400):
        is_long = round_number % 2 == 0
        model.observe(DraftOutcome(1, 4, 4, 4) if is_long else DraftOutcome(1, 4, 1, 0))
        model.end_round()
    curve = model.session_curve(1)
    assert curve.expected_gain(4) == pytest.approx(2.0, rel=0.1)
    assert sum(curve.presence) == pytest.approx(2.5, rel=0.1)
    assert curve.worth[3] == pytest.approx(2.0 / 2.5, rel=0.1)


def test_an_id_that_is_missing_is_not_accepted() -> None:
    model = AcceptanceModel(2)
    for _ in range(200):
        model.observe(DraftOutcome(1, 2))
        model.end_round()
    assert model.session_curve(1).expected_gain(2) < 0.05


@pytest.mark.parametrize("sessions", [1, 4, 16])
def test_what_a_new_session_expects_changes_with_the_number_of_wishes_and_not_of_rounds(sessions: int) -> None:
    model = AcceptanceModel(2)

    def wishes(count: int, accepted: int) -> float:
        for _ in range(count // sessions):
            for session in range(sessions):
                model.observe(DraftOutcome(session, 2, 2, accepted))
            model.end_round()
        return model.session_curve(-1).expected_gain(2)

    assert wishes(256, 2) > 1.9
    assert 0.3 < wishes(32, 0) < 1.2
    assert wishes(64, 0) < 0.2
