"""What counters tell of verified proposals: sums under vLLM's names, and the same by pool and position."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from outrider_target.acceptance_counters import AcceptanceCounters
from outrider_target.drafting.speculator import Verdict

verdicts = st.lists(
    st.integers(1, 5).flatmap(
        lambda proposed: st.builds(
            Verdict, st.just(1), st.sampled_from(["a", "b"]), st.just(proposed), st.integers(0, proposed)
        )
    ),
    max_size=12,
)


def counted(steps: list[list[Verdict]]) -> CollectorRegistry:
    registry = CollectorRegistry()
    counters = AcceptanceCounters(registry, "m")
    for step in steps:
        counters.observe(step)
    return registry


def value(registry: CollectorRegistry, name: str, **labels: str) -> float:
    return registry.get_sample_value(f"{name}_total", {"model_name": "m", **labels}) or 0.0


@given(st.lists(verdicts, max_size=3))
def test_every_id_is_counted_once_at_its_position_and_for_its_pool(steps: list[list[Verdict]]) -> None:
    registry, flat = counted(steps), [verdict for step in steps for verdict in step]
    assert value(registry, "vllm:spec_decode_num_drafts") == len(flat)
    assert value(registry, "vllm:spec_decode_num_draft_tokens") == sum(verdict.proposed for verdict in flat)
    assert value(registry, "vllm:spec_decode_num_accepted_tokens") == sum(verdict.accepted for verdict in flat)
    for position in range(6):
        accepted = [verdict for verdict in flat if verdict.accepted > position]
        at = {"position": str(position)}
        assert value(registry, "vllm:spec_decode_num_accepted_tokens_per_pos", **at) == len(accepted)
        for pool in ("a", "b"):
            reached = [verdict for verdict in flat if verdict.pool == pool and verdict.proposed > position]
            assert value(registry, "outrider_draft_tokens", pool=pool, **at) == len(reached)
            right = [verdict for verdict in reached if verdict.accepted > position]
            assert value(registry, "outrider_accepted_tokens", pool=pool, **at) == len(right)


def test_there_is_no_series_for_a_position_that_no_proposal_reached() -> None:
    registry = counted([[Verdict(1, "a", 3, 0), Verdict(2, "a", 2, 2)]])
    samples = [sample for metric in registry.collect() for sample in metric.samples if sample.name.endswith("_total")]
    positions = {
        name: [sample.labels["position"] for sample in samples if sample.name == name]
        for name in ("outrider_draft_tokens_total", "outrider_accepted_tokens_total")
    }
    assert positions == {"outrider_draft_tokens_total": ["0", "1", "2"], "outrider_accepted_tokens_total": ["0", "1"]}
