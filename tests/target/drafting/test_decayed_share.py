"""A share that forgets."""

from __future__ import annotations

import pytest

from outrider_target.drafting.decayed_share import DecayedShare


def test_while_nothing_was_seen_the_prior_holds() -> None:
    assert DecayedShare(8, 2.0).share(0.3) == 0.3


def test_the_prior_counts_for_so_many_answers() -> None:
    share = DecayedShare(10**9, 2.0)
    for proposes in (True, False, False):
        share.observe(proposes)
    assert share.share(0.5) == pytest.approx(2.0 / 5.0)


@pytest.mark.parametrize("proposes", [True, False])
def test_what_was_seen_long_ago_is_forgotten(proposes: bool) -> None:
    share = DecayedShare(8, 2.0)
    for _ in range(100):
        share.observe(not proposes)
    for _ in range(24):
        share.observe(proposes)
    assert (share.share(0.5) > 0.8) == proposes
    assert (share.share(0.5) < 0.2) == (not proposes)
