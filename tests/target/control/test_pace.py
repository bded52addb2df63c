"""Time per token as requests see it."""

from __future__ import annotations

import pytest

from outrider_target.control.pace import Pace


def test_two_requests_in_one_round_both_wait_for_it() -> None:
    pace = Pace()
    pace.observe(rows=2, committed=6, round_s=0.03)
    pace.observe(rows=0, committed=0, round_s=0.5)
    assert pace.committed_tokens == 6
    assert pace.decoding_s / pace.committed_tokens == pytest.approx(0.01)
