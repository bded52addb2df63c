"""What draft workers are told of a sequence."""

from __future__ import annotations

from random import Random

import pytest
from outrider_doubles.engine_bench import EngineBench, toy_settings
from outrider_doubles.scripted_speculator import ScriptedSpeculator

from outrider_target.drafting.speculator import SessionSpec
from outrider_wire.generation import GenerationRequest
from outrider_wire.sampling import SamplingParams, SpeculationOptions


class Listening(ScriptedSpeculator):
    """Keeps what sessions are opened with."""

    def __init__(self) -> None:
        super().__init__(lambda ids, depth: [], Random(0))
        self.specs: list[SessionSpec] = []

    def open(self, spec: SessionSpec) -> None:
        self.specs.append(spec)
        super().open(spec)


def session_of(request: GenerationRequest, seed: int) -> SessionSpec:
    speculator = Listening()
    bench = EngineBench(toy_settings(), speculator, depth=4)
    bench.submit(request, seed)
    bench.run()
    (spec,) = speculator.specs
    return spec


def test_drafters_share_the_seed_that_a_request_without_one_was_given() -> None:
    sampling = SamplingParams(temperature=1.0, max_tokens=4)
    assert session_of(GenerationRequest(prompt_token_ids=(3, 4), sampling=sampling), seed=77).sampling.seed == 77


def test_a_session_is_bounded_by_what_its_request_allows() -> None:
    options = SpeculationOptions(max_depth=2, pool="ngram")
    request = GenerationRequest(prompt_token_ids=(3, 4), sampling=SamplingParams(max_tokens=4), speculation=options)
    spec = session_of(request, seed=0)
    assert spec.depth_cap == 2 and spec.pool == "ngram"


@pytest.mark.parametrize("hit_rate", [0.0, 0.6, 1.0])
def test_reports_of_rounds_add_up_to_the_statistics_at_the_end(hit_rate: float) -> None:
    speculator = ScriptedSpeculator(lambda ids, k: [id_ % 7 for id_ in ids[-k:]], Random(3), hit_rate)
    bench = EngineBench(toy_settings(), speculator, depth=4)
    request = GenerationRequest(prompt_token_ids=(3, 4, 5), sampling=SamplingParams(max_tokens=40, ignore_eos=True))
    answer = bench.submit(request, seed=0)
    bench.run()
    assert answer.finished is not None
    counted = answer.finished.speculation
    verified = [report for report in answer.rounds if report.pool]
    assert tuple(report.drafted for report in verified) == counted.per_step_drafted
    assert tuple(report.accepted for report in verified) == counted.per_step_accepted
    assert len(answer.rounds) - len(verified) == counted.num_fallback_steps
    assert bool(verified) == (hit_rate > 0) and bool(counted.num_fallback_steps) == (hit_rate < 1)
