"""The metrics of many processes as one: sums, shares, departures, damage, bounds."""

from __future__ import annotations

import math

import pytest
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from outrider_cluster.controller.cluster_metrics import ClusterMetrics
from outrider_cluster.controller.metric_sum import MetricSum
from outrider_wire.registry import Member, MemberKind, MemberState, Snapshot, TargetMember

ACCEPTED = "vllm:spec_decode_num_accepted_tokens"


def process(accepted: float, running: float = 0, cache: float = 0, step_s: float = 0.03) -> str:
    registry = CollectorRegistry()
    Counter(ACCEPTED, "Accepted.", ("model_name",), registry=registry).labels("m").inc(accepted)
    Gauge("vllm:num_requests_running", "Running.", ("model_name",), registry=registry).labels("m").set(running)
    Gauge("vllm:kv_cache_usage_perc", "Cache.", ("model_name",), registry=registry).labels("m").set(cache)
    Histogram("outrider_step_seconds", "Step.", registry=registry, buckets=(0.01, 0.1)).observe(step_s)
    return generate_latest(registry).decode()


def value(text: str, name: str, **labels: str) -> float:
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    found = [sample.value for sample in samples if sample.name == name and sample.labels == labels]
    return found[0] if found else math.nan


def summed(*texts: str) -> str:
    total = MetricSum(1000)
    for text in texts:
        total.add(text)
    return total.render()


def test_counters_and_gauges_are_added_up_by_name_and_labels() -> None:
    text = summed(process(3, running=1), process(4, running=2))
    assert value(text, f"{ACCEPTED}_total", model_name="m") == 7
    assert value(text, "vllm:num_requests_running", model_name="m") == 3


def test_histograms_are_added_up_bucket_by_bucket() -> None:
    text = summed(process(0, step_s=0.005), process(0, step_s=0.05), process(0, step_s=5.0))
    assert [value(text, "outrider_step_seconds_bucket", le=le) for le in ("0.01", "0.1", "+Inf")] == [1, 2, 3]
    assert value(text, "outrider_step_seconds_count") == 3
    assert value(text, "outrider_step_seconds_sum") == pytest.approx(5.055)


def test_shares_are_averaged() -> None:
    assert (
        value(summed(process(0, cache=0.5), process(0, cache=0.25)), "vllm:kv_cache_usage_perc", model_name="m")
        == 0.375
    )


def test_names_help_and_types_pass_through() -> None:
    lines = summed(process(1)).splitlines()
    assert f"# HELP {ACCEPTED}_total Accepted." in lines
    assert f"# TYPE {ACCEPTED}_total counter" in lines
    assert "# TYPE outrider_step_seconds histogram" in lines
    assert not any("_created" in line for line in lines)


@pytest.mark.parametrize("text", ["vllm:x{", "a b c d e", 'x{y="1" 3', "x one"])
def test_damaged_text_is_refused_and_adds_nothing(text: str) -> None:
    total = MetricSum(1000)
    with pytest.raises(ValueError):
        total.add(f"fine 1\n{text}\n")
    assert total.render() == ""


def test_the_number_of_series_is_bounded_and_what_is_left_out_is_counted() -> None:
    total = MetricSum(10)
    total.add("".join(f'x{{label="{i}"}} 1\n' for i in range(25)))
    assert total.render().count("\nx{") == 10
    assert total.dropped == 15


def test_one_name_with_two_types_keeps_the_first() -> None:
    total = MetricSum(10)
    total.add("# TYPE x gauge\nx 1\n")
    total.add("# TYPE x histogram\nx_count 1\nx_sum 1\n")
    assert value(total.render(), "x") == 1
    assert total.dropped == 2


def test_counters_of_a_departed_member_stay_and_its_gauges_go() -> None:
    metrics = ClusterMetrics(1000)
    metrics.departed("gone", process(5, running=9))
    text = metrics.render({"here": process(1, running=2)}, Snapshot())
    assert value(text, f"{ACCEPTED}_total", model_name="m") == 6
    assert value(text, "vllm:num_requests_running", model_name="m") == 2


def test_a_member_that_returns_is_not_counted_twice() -> None:
    metrics = ClusterMetrics(1000)
    metrics.departed("paused", process(5))
    metrics.returned("paused")
    text = metrics.render({"paused": process(6)}, Snapshot())
    assert value(text, f"{ACCEPTED}_total", model_name="m") == 6


def test_counters_survive_any_number_of_departures() -> None:
    metrics = ClusterMetrics(1000)
    for i in range(200):
        metrics.departed(f"worker-{i}", process(1))
    text = metrics.render({}, Snapshot())
    assert value(text, f"{ACCEPTED}_total", model_name="m") == 200
    assert value(text, "outrider_step_seconds_count") == 200


def test_damaged_metrics_of_one_member_leave_the_others_alone_and_are_counted() -> None:
    metrics = ClusterMetrics(1000)
    text = metrics.render({"a": "x{", "b": process(1)}, Snapshot())
    assert value(text, f"{ACCEPTED}_total", model_name="m") == 1
    assert value(text, "outrider_controller_unreadable_metrics_total") == 1


def test_members_are_counted_by_kind_and_state() -> None:
    metrics = ClusterMetrics(1000)
    draft = Member("a", MemberKind.DRAFT, MemberState.READY, "", "", 1)
    target = Member("b", MemberKind.TARGET, MemberState.STARTING, "", "", 1)
    text = metrics.render({}, Snapshot((draft, target)))
    assert value(text, "outrider_cluster_members", kind="draft", state="ready") == 1
    assert value(text, "outrider_cluster_members", kind="target", state="starting") == 1
    assert math.isnan(value(metrics.render({}, Snapshot()), "outrider_cluster_members", kind="draft", state="ready"))


def test_fingerprints_of_ready_targets_are_counted_by_model() -> None:
    def target(name: str, fingerprint: str, state: MemberState = MemberState.READY) -> Member:
        facts = TargetMember("m", 0, 0, 0.0, True, "", 0, "", "t", 9, 9, logits_fingerprint=fingerprint)
        return Member(name, MemberKind.TARGET, state, "", "", 1, target=facts)

    metrics, name = ClusterMetrics(1000), "outrider_cluster_logits_fingerprints"
    alike = (target("a", "f"), target("b", "f"), target("c", "g", MemberState.DRAINING))
    assert value(metrics.render({}, Snapshot(alike)), name, model_name="m") == 1
    assert value(metrics.render({}, Snapshot((*alike, target("d", "g")))), name, model_name="m") == 2
    assert math.isnan(value(metrics.render({}, Snapshot()), name, model_name="m"))
