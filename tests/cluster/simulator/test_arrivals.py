"""Arrivals that vary vary as they should; a constant rate of the same mean is something else."""

from __future__ import annotations

import math
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from outrider_cluster.simulator.arrivals import open_arrivals
from outrider_cluster.simulator.traffic import Traffic

HERE = Path(".")
PERIODS = 50


def times(arrivals: dict[str, Any], until_s: float, folder: Path = HERE) -> np.ndarray[Any, np.dtype[np.float64]]:
    """[N] moments of arrivals."""
    traffic = Traffic.model_validate({"arrivals": arrivals})
    found = open_arrivals(traffic, folder, np.random.default_rng(3))
    return np.asarray([arrival.at_s for arrival in takewhile(lambda arrival: arrival.at_s < until_s, found)])


def test_bursts_have_their_rate_and_the_time_between_them_its_own() -> None:
    bursts = {"kind": "bursts", "rate_per_s": 20.0, "burst_rate_per_s": 80.0, "every_s": 10.0, "for_s": 4.0}
    phase = times(bursts, 10.0 * PERIODS) % 10.0
    assert np.sum(phase < 4.0) / (4.0 * PERIODS) == pytest.approx(80.0, rel=0.05)
    assert np.sum(phase >= 4.0) / (6.0 * PERIODS) == pytest.approx(20.0, rel=0.05)


def test_a_day_has_its_low_and_its_high() -> None:
    day = {"kind": "diurnal", "low_rate_per_s": 20.0, "high_rate_per_s": 80.0, "period_s": 20.0}
    phase = times(day, 20.0 * PERIODS) % 20.0
    swing = 30.0 * math.sin(math.pi / 4) / (math.pi / 4)  # mean of the cosine over the quarter around its top
    high, low = np.abs(phase - 10.0) < 2.5, np.abs(phase - 10.0) > 7.5
    assert np.sum(high) / (5.0 * PERIODS) == pytest.approx(50.0 + swing, rel=0.05)
    assert np.sum(low) / (5.0 * PERIODS) == pytest.approx(50.0 - swing, rel=0.07)


@pytest.mark.parametrize("speed", [0.5, 1.0, 4.0])
def test_a_trace_is_replayed_as_fast_as_its_speed_says(speed: float, tmp_path: Path) -> None:
    (tmp_path / "trace.csv").write_text("time_s,prompt_tokens,output_tokens\n0,1,1\n2,1,1\n8,1,1\n")
    trace = {"kind": "trace", "file": "trace.csv", "speed": speed}
    assert times(trace, 100.0, tmp_path).tolist() == [0.0, 2.0 / speed, 8.0 / speed]
