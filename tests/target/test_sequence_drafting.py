"""What draft workers are told of a sequence."""

from __future__ import annotations

from random import Random

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
