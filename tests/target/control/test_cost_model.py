"""Step costs: fitted, refined, kept, and refused where they do not hold."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from outrider_doubles.depth_replay import CPU, GPU

from outrider_runtime.errors import InvalidConfig
from outrider_target.control.cost_model import StepCostModel, StepLoad, StepSample
from outrider_target.control.cost_profile import CostProfile, ProfileKey, load_profile
from outrider_target.control.nonnegative_fit import fit_nonnegative
from outrider_target.control.refined_cost import RefinedCost

KEY = ProfileKey("weights", "bfloat16", 1, 2, "a CPU", "torch 2")
LOADS = [StepLoad(rows, rows * (1 + k), rows * 100.0) for rows in (1, 4, 16, 64) for k in (0, 1, 4, 8)]


def samples(model: StepCostModel) -> tuple[StepSample, ...]:
    return tuple(StepSample(load, model.step_s(load)) for load in LOADS)


def test_a_fit_finds_the_times_that_it_was_made_from() -> None:
    truth = StepCostModel((1, 576), (0.02, 0.4), row_s=1e-4, context_s=2e-7, pair_s=1e-7)
    found = StepCostModel.fit(samples(truth))
    for load in LOADS:
        assert found.step_s(load) == pytest.approx(truth.step_s(load), rel=0.02)


@given(st.lists(st.floats(0.001, 10), min_size=len(LOADS), max_size=len(LOADS)))
@settings(max_examples=50)
def test_whatever_was_measured_more_tokens_never_cost_less(seconds: list[float]) -> None:
    model = StepCostModel.fit([StepSample(load, s) for load, s in zip(LOADS, seconds, strict=True)])
    times = model.steps_s(8, np.arange(8.0, 2000.0, 7.0), 800)
    assert np.all(np.diff(times) >= 0) and np.all(np.isfinite(times))


def test_coefficients_that_would_be_negative_are_none() -> None:
    columns = np.array([[1.0, 1.0], [1.0, 2.0], [1.0, 3.0]])
    assert fit_nonnegative(columns, np.array([3.0, 2.0, 1.0])) == pytest.approx([2.0, 0.0])


def test_one_token_count_makes_no_model() -> None:
    with pytest.raises(InvalidConfig, match="1 different token counts"):
        StepCostModel.fit([StepSample(StepLoad(1, 1), 0.1)])


@pytest.mark.parametrize(
    ("knots", "seconds", "words"),
    [
        ((1,), (1,), "two or more"),
        ((1, 1), (1, 2), "must rise"),
        ((1, 2), (2, 1), "must not fall"),
        ((1, 2), (1, float("nan")), "finite"),
    ],
)
def test_tables_that_make_no_sense_are_refused(
    knots: tuple[float, ...], seconds: tuple[float, ...], words: str
) -> None:
    with pytest.raises(InvalidConfig, match=words):
        StepCostModel(knots, seconds)


def test_a_machine_that_became_slower_is_noticed_and_a_single_pause_is_not() -> None:
    cost, load = RefinedCost(CPU), StepLoad(4, 4)
    expected = cost.round_s(load)
    cost.observe(load, 100 * expected, has_drafts=False)
    assert cost.round_s(load) < 1.1 * expected
    for _ in range(100):
        cost.observe(load, 1.5 * expected, has_drafts=False)
    assert cost.round_s(load) == pytest.approx(1.5 * expected, rel=0.02)


def test_what_drafts_cost_beyond_their_tokens_is_learned_apart() -> None:
    cost, plain, deep = RefinedCost(CPU), StepLoad(1, 1), StepLoad(1, 5)
    for _ in range(200):
        cost.observe(plain, CPU.step_s(plain), has_drafts=False)
        cost.observe(deep, CPU.step_s(deep) + 0.01, has_drafts=True)
    assert cost.drafting_s == pytest.approx(0.01, rel=0.1)
    assert cost.round_s(plain) == pytest.approx(CPU.step_s(plain), rel=0.02)


def test_a_profile_survives_the_disk(tmp_path: Path) -> None:
    profile = CostProfile(KEY, samples(GPU))
    profile.save(tmp_path / "deep" / "p.json")
    assert load_profile(tmp_path / "deep" / "p.json") == profile
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["p.json"]


def test_a_profile_from_elsewhere_is_refused_naming_what_differs_and_the_fix() -> None:
    elsewhere = replace(KEY, hardware="an H100", threads=8)
    with pytest.raises(InvalidConfig, match=r"threads is 8, here it is 2; hardware is 'an H100'.*controller\.dynamic"):
        CostProfile(elsewhere, ()).check_holds(KEY, Path("p.json"))


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"format": 2}', '{"format": 1, "key": {}, "samples": [[1, 1, 0, -1]]}']
)
def test_a_file_that_is_no_profile_is_refused_by_name(tmp_path: Path, text: str) -> None:
    path = tmp_path / "p.json"
    path.write_text(text)
    with pytest.raises(InvalidConfig, match=r"p\.json: is no cost profile"):
        load_profile(path)


def test_a_profile_that_is_not_there_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfig, match=r"p\.json: cannot be read: No such file"):
        load_profile(tmp_path / "p.json")
