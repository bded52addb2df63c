"""Step costs are measured once within their budget, kept, and measured anew where what was kept does not hold."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
import torch

from outrider_runtime.clock import ManualClock
from outrider_runtime.errors import InvalidConfig
from outrider_target.control.cost_model import StepLoad, StepSample
from outrider_target.control.cost_profile import CostProfile, ProfileKey, load_profile
from outrider_target.cost_profiler import BUDGET_S, StepBounds, cost_profile, given_profile, measure_steps
from outrider_target.forward import CacheShape, RaggedBatch

KEY = ProfileKey("weights", "bfloat16", 1, 2, "a CPU", "torch 2")
BOUNDS = StepBounds(max_rows=8, max_depth=4, max_length=1024, max_tokens=512)
WIDE = replace(BOUNDS, max_rows=64)


def true_s(load: StepLoad) -> float:
    """What steps take."""
    return 0.002 + 1e-5 * load.tokens + 1e-7 * load.context


@dataclass
class TimedForward:
    """A `Forward` whose steps only take time."""

    clock: ManualClock
    slowness: Callable[[int], float] = lambda _: 1.0
    """How many times longer than it should the n-th step takes."""
    vocab_size: int = 8
    cache_shape: CacheShape = field(default_factory=lambda: CacheShape(1, 1, 1, 16, torch.float32))
    loads: list[StepLoad] = field(default_factory=list)
    blocks: int = 0

    def allocate_cache(self, num_blocks: int) -> None:
        """Note the size."""
        self.blocks = num_blocks

    def run(self, batch: RaggedBatch) -> torch.Tensor:
        """Let the step's time pass."""
        assert batch.block_tables.max() < self.blocks
        starts = batch.row_starts[:-1]
        load = StepLoad(len(starts), len(batch.token_ids), int(batch.positions[starts].sum()))
        self.clock.advance(true_s(load) * self.slowness(len(self.loads)))
        self.loads.append(load)
        return torch.zeros(len(batch.logit_indices), self.vocab_size)


def bench(slowness: Callable[[int], float] = lambda _: 1.0) -> TimedForward:
    return TimedForward(ManualClock(), slowness)


def measured(forward: TimedForward, folder: Path, bounds: StepBounds = BOUNDS, key: ProfileKey = KEY) -> CostProfile:
    return cost_profile(forward, key, bounds, folder, forward.clock)


def test_every_sample_is_what_its_step_takes_and_they_reach_the_bounds() -> None:
    forward = bench()
    samples = measure_steps(forward, BOUNDS, forward.clock)
    assert all(sample.seconds == pytest.approx(true_s(sample.load)) for sample in samples)
    shapes = {(sample.load.rows, sample.load.tokens) for sample in samples}
    assert shapes == {(rows, rows * per_row) for rows in (1, 2, 4, 8) for per_row in (1, 2, 3, 5)}
    assert len({sample.load.context / sample.load.rows for sample in samples}) == 2, "short and long contexts"


def test_pauses_do_not_count_while_any_of_the_turns_goes_without_one() -> None:
    forward = bench(lambda step: 1.0 if step % 3 else 5.0)
    samples = measure_steps(forward, BOUNDS, forward.clock)
    assert all(sample.seconds == pytest.approx(true_s(sample.load)) for sample in samples)


def test_a_slow_machine_begins_no_step_after_its_time_and_still_reaches_the_bounds() -> None:
    forward = bench(lambda _: 300.0)
    samples = measure_steps(forward, WIDE, forward.clock)
    dearest_s = 300 * true_s(StepLoad(64, 64 * 5, 64 * 512))
    assert BUDGET_S <= forward.clock.now_s() <= BUDGET_S + dearest_s
    loads = {(sample.load.rows, sample.load.tokens) for sample in samples}
    assert {(1, 1), (64, 64), (1, 5), (64, 320)} <= loads and len(loads) < 20
    CostProfile(KEY, samples).check_reaches(WIDE.greatest, Path("p.json"))


def test_steps_that_cannot_occur_are_not_measured() -> None:
    forward = bench()
    measure_steps(forward, replace(WIDE, max_tokens=200), forward.clock)
    assert max(load.tokens for load in forward.loads) == replace(WIDE, max_tokens=200).greatest.tokens == 192


def test_what_was_measured_is_used_again_without_a_step(tmp_path: Path) -> None:
    first = measured(bench(), tmp_path)
    forward = bench()
    assert measured(forward, tmp_path) == first
    assert not forward.loads


def damaged(path: Path) -> None:
    path.write_text(path.read_text()[:40])


def of_another_model(path: Path) -> None:
    CostProfile(replace(KEY, model="others"), load_profile(path).samples).save(path)


def of_other_hardware(path: Path) -> None:
    CostProfile(replace(KEY, hardware="an H100"), load_profile(path).samples).save(path)


@pytest.mark.parametrize("spoil", [damaged, of_another_model, of_other_hardware])
def test_a_kept_file_that_does_not_hold_is_measured_anew_and_replaced(
    tmp_path: Path, spoil: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / f"{KEY.digest}.json"
    first = measured(bench(), tmp_path)
    spoil(path)
    forward = bench()
    assert measured(forward, tmp_path) == first == load_profile(path)
    assert forward.loads and "measured anew" in caplog.text and path.name in caplog.text


def test_machines_and_models_have_files_of_their_own(tmp_path: Path) -> None:
    for key in (KEY, replace(KEY, model="others"), replace(KEY, hardware="an H100")):
        assert measured(bench(), tmp_path, key=key).key == key
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.parametrize(
    "grown",
    [WIDE, replace(BOUNDS, max_depth=8), replace(WIDE, max_rows=256, max_tokens=4096)],
    ids=["more rows", "deeper", "many more rows"],
)
def test_bounds_that_grew_are_measured_anew_and_bounds_that_shrank_are_not(tmp_path: Path, grown: StepBounds) -> None:
    measured(bench(), tmp_path)
    forward = bench()
    found = measured(forward, tmp_path, grown)
    assert max(load.rows for load in forward.loads) == grown.max_rows
    assert max(sample.load.tokens for sample in found.samples) == grown.greatest.tokens
    again = bench()
    assert measured(again, tmp_path, BOUNDS) == measured(again, tmp_path, grown) == found
    assert not again.loads


def test_where_nothing_can_be_kept_steps_are_measured_all_the_same(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    assert measured(bench(), tmp_path / "file").samples
    assert "measured again at the next start" in caplog.text


def test_a_named_file_is_refused_from_elsewhere_and_serves_with_a_warning_where_it_is_short(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path, caplog.handler.level = tmp_path / "named.json", logging.WARNING
    CostProfile(KEY, (StepSample(StepLoad(1, 1), 0.1), StepSample(StepLoad(8, 40), 0.2))).save(path)
    given_profile(path, KEY, BOUNDS)
    assert not caplog.records
    given_profile(path, KEY, WIDE)
    assert "ends at 8 rows and 40 tokens, here steps may have 64 rows and 320 tokens" in caplog.text
    with pytest.raises(InvalidConfig, match="taken elsewhere"):
        given_profile(path, replace(KEY, model="others"), BOUNDS)
