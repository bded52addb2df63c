"""What latency objectives do to depths: rows that miss theirs are served first, those that keep it change nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from outrider_doubles.depth_replay import CHAT, CPU, exact_view

from outrider_target.control.latency_objectives import LatencyObjectives
from outrider_target.control.refined_cost import RefinedCost
from outrider_target.control.threshold import StepPlans
from outrider_target.control.views import StepView

ROWS = 12


def depths(objectives_s: Mapping[int, float]) -> Mapping[int, int]:
    """Of equal rows, some of which have objectives."""
    view = exact_view(dict.fromkeys(range(ROWS), CHAT))
    rows = tuple(replace(row, objective_s=objectives_s.get(row.key)) for row in view.rows)
    return StepPlans(StepView(rows), RefinedCost(CPU), 8).best().depths


def test_a_class_that_misses_its_objective_drafts_deeper_than_one_without() -> None:
    found = depths({0: 0.015, 1: 0.015})
    urgent, patient = [found[0], found[1]], [found[key] for key in range(2, ROWS)]
    assert min(urgent) > max(patient)
    plain = depths({})
    assert min(urgent) > max(plain.values())


def test_an_objective_that_is_kept_changes_nothing() -> None:
    assert depths({0: 10.0, 1: 10.0}) == depths({})


def test_each_class_has_its_own_objective_and_requests_without_one_the_unnamed() -> None:
    objectives = LatencyObjectives(0.1, {"interactive": 0.04, "batch": None})
    assert [objectives.of(name) for name in ("interactive", "batch", None)] == [0.04, None, 0.1]
    assert objectives.of("refused long before") == 0.1
