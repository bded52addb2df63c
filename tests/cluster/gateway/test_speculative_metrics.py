from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outrider_cluster.gateway.speculative_metrics import outrider_extras, request_metrics, speculative_decoding
from outrider_wire.generation import Finished, FinishReason, SpeculationStatistics


def statistics(rounds: list[tuple[int, int]], depth: int) -> SpeculationStatistics:
    return SpeculationStatistics(
        num_spec_steps=len(rounds),
        num_draft_tokens=sum(drafted for drafted, _ in rounds),
        num_accepted_draft_tokens=sum(accepted for _, accepted in rounds),
        num_spec_tokens=depth,
        per_step_drafted=tuple(drafted for drafted, _ in rounds),
        per_step_accepted=tuple(accepted for _, accepted in rounds),
    )


def test_four_rounds_of_three_give_the_object_that_vllm_documents() -> None:
    found = speculative_decoding(statistics([(3, 0), (3, 1), (3, 2), (3, 3)], depth=3))
    assert found == {
        "mean_acceptance_length": 2.5,
        "draft_acceptance_rate": 0.5,
        "acceptance_histogram": [1, 1, 1, 1],
        "acceptance_histogram_by_draft_length": {"3": [1, 1, 1, 1]},
        "num_spec_steps": 4,
        "num_accepted_draft_tokens": 6,
        "num_draft_tokens": 12,
        "num_spec_tokens": 3,
        "per_step_accepted": [0, 1, 2, 3],
        "per_step_drafted": [3, 3, 3, 3],
    }


def test_a_request_without_speculation_has_length_one_and_rate_zero() -> None:
    found = speculative_decoding(SpeculationStatistics())
    assert (found["mean_acceptance_length"], found["draft_acceptance_rate"]) == (1.0, 0.0)
    assert found["acceptance_histogram"] == [0]
    assert found["acceptance_histogram_by_draft_length"] == {}


@given(
    st.lists(st.integers(1, 64).flatmap(lambda drafted: st.tuples(st.just(drafted), st.integers(0, drafted)))),
    st.integers(0, 64),
)
def test_histograms_count_every_round_once_and_every_accepted_token(rounds: list[tuple[int, int]], depth: int) -> None:
    found = speculative_decoding(statistics(rounds, depth))
    by_length = found["acceptance_histogram_by_draft_length"]
    assert sum(found["acceptance_histogram"]) == sum(map(sum, by_length.values())) == len(rounds)
    accepted = sum(accepted for _, accepted in rounds)
    assert sum(i * count for i, count in enumerate(found["acceptance_histogram"])) == accepted
    assert all(len(histogram) == int(length) + 1 for length, histogram in by_length.items())


def test_times_are_in_milliseconds_and_the_first_token_has_no_gap() -> None:
    finished = Finished(
        FinishReason.STOP, 1, 3, 11, queue_time_us=500, time_to_first_token_us=2000, generation_time_us=50_000
    )
    found = request_metrics(finished)
    assert (found["queue_time_ms"], found["time_to_first_token_ms"], found["generation_time_ms"]) == (0.5, 2.0, 50.0)
    assert found["mean_itl_ms"] == pytest.approx(5.0)
    assert found["tokens_per_second"] == pytest.approx(200.0)


def test_a_single_token_has_no_rate() -> None:
    found = request_metrics(Finished(FinishReason.LENGTH, 1, 3, 1))
    assert (found["mean_itl_ms"], found["tokens_per_second"]) == (None, None)


def test_pools_that_drafted_without_success_are_reported() -> None:
    counts = SpeculationStatistics(accepted_by_pool={"a": 2}, drafted_by_pool={"a": 4, "b": 5}, draft_wait_us=1500)
    found = outrider_extras([counts], exact=True)
    assert found["by_pool"] == {
        "a": {"num_draft_tokens": 4, "num_accepted_draft_tokens": 2},
        "b": {"num_draft_tokens": 5, "num_accepted_draft_tokens": 0},
    }
    assert (found["draft_wait_ms"], found["exact"]) == (1.5, True)


def test_what_several_choices_drafted_is_added_up() -> None:
    first = SpeculationStatistics(
        accepted_by_pool={"a": 2}, drafted_by_pool={"a": 4}, draft_wait_us=1500, num_fallback_steps=1
    )
    second = SpeculationStatistics(
        accepted_by_pool={"b": 3}, drafted_by_pool={"a": 1, "b": 5}, draft_wait_us=500, num_fallback_steps=2
    )
    assert outrider_extras([first, second], exact=False) == {
        "num_fallback_steps": 3,
        "draft_wait_ms": 2.0,
        "by_pool": {
            "a": {"num_draft_tokens": 5, "num_accepted_draft_tokens": 2},
            "b": {"num_draft_tokens": 5, "num_accepted_draft_tokens": 3},
        },
        "exact": False,
        "rejection_sample_method": "coupled",
    }
