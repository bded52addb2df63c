"""A whole target under the dynamic policy: latency classes change no token, and its decisions are told."""

from __future__ import annotations

from pathlib import Path

from outrider_doubles.draft_house import draft_house
from outrider_doubles.tiny_checkpoint import write_tiny_checkpoint

from outrider_target.control.depth_plan import DepthPlan
from outrider_target.control.settings import DepthSettings, LatencyClass
from outrider_wire.generation import GenerationRequest
from outrider_wire.sampling import SamplingParams, SpeculationOptions

CLASSES = {"interactive": LatencyClass(token_latency_ms=0.01), "batch": LatencyClass()}
DYNAMIC = DepthPlan(4, "dynamic", DepthSettings(latency_classes=CLASSES))


def request(options: SpeculationOptions) -> GenerationRequest:
    sampling = SamplingParams(temperature=1.0, seed=1, max_tokens=32, ignore_eos=True)
    return GenerationRequest("r", "tiny", prompt_token_ids=(1, 2, 3), sampling=sampling, speculation=options)


async def test_classes_change_no_token_unknown_ones_are_refused_and_the_status_tells_the_decision(
    tmp_path: Path,
) -> None:
    async with draft_house(write_tiny_checkpoint(tmp_path), ("ngram",), DYNAMIC) as house:
        await house.hire("ngram", {"method": "ngram", "prompt_lookup_min": 1})
        plain = await house.outcome(request(SpeculationOptions(max_depth=0)))
        assert len(plain.token_ids) == 32
        for name in (*CLASSES, None):
            assert await house.outcome(request(SpeculationOptions(latency_class=name))) == plain
        refused = await house.outcome(request(SpeculationOptions(latency_class="bulk")))
        for part in ("InvalidRequest", "speculation.latency_class", "bulk", "interactive, batch"):
            assert part in refused.error
        target = house.replica.member().target
        assert target is not None
        assert target.predicted_goodput_tokens_per_s > 0
        assert target.plain_goodput_tokens_per_s > 0
        assert target.goodput_tokens_per_s > 0
