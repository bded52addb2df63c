"""Faults that people make about numbers of replicas; each is found, at its place, with what to do."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
import yaml
from outrider_doubles.repository import ROOT

from outrider_cluster.config.cluster import ClusterConfig
from outrider_cluster.config.finding import format_path
from outrider_cluster.config.validate import validate_source
from outrider_cluster.config.yaml_source import parse_yaml

ARGS = "applications[0].args"
POOL = f"{ARGS}.draft_pools[0]"


def good() -> Any:
    """The file of the repository, with every number of replicas left open."""
    data = yaml.safe_load((ROOT / "cluster.yaml").read_text(encoding="utf-8"))
    args = data["applications"][0]["args"]
    for section in (args["target"], args["draft_pools"][0]):
        del section["replicas"]
    for section in (args["target"], args["gateway"], args["draft_pools"][0]):
        section["autoscaling"] = {"max_replicas": 4}
    return data


def section(data: Any, name: str) -> Any:
    args = data["applications"][0]["args"]
    return args["draft_pools"][0] if name == "pool" else args[name]


def findings(data: Any) -> dict[str, str]:
    source = parse_yaml(yaml.safe_dump(data, sort_keys=False), "cluster.yaml")
    return {format_path(found.path): str(found) for found in validate_source(source).findings}


def test_numbers_may_be_left_open() -> None:
    data = good()
    assert findings(data) == {}
    section(data, "pool")["autoscaling"]["min_replicas"] = 0
    section(data, "pool")["autoscaling"]["downscale_to_zero_delay_s"] = 5
    assert findings(data) == {}


@pytest.mark.parametrize(
    ("where", "scaling", "path", "words"),
    [
        ("pool", {"min_replicas": 5}, f"{POOL}.autoscaling", "min_replicas 5 exceeds max_replicas 4: raise the one or"),
        ("pool", {"max_replica": 5}, f"{POOL}.autoscaling.max_replica", "Did you mean max_replicas?"),
        ("pool", {"max_replicas": None}, f"{POOL}.autoscaling.max_replicas", "an integer at least 1"),
        ("pool", {"downscale_to_zero_delay_s": 5}, f"{POOL}.autoscaling", "has no meaning with min_replicas 1: set"),
        ("pool", {"target_late_ratio": 0.9}, f"{POOL}.autoscaling.target_late_ratio", "at most 0.5"),
        ("pool", {"target_kv_usage_ratio": 0.9}, f"{POOL}.autoscaling.target_kv_usage_ratio", "unknown key"),
        ("target", {"min_replicas": 0}, f"{ARGS}.target.autoscaling.min_replicas", "at least 1"),
        ("target", {"upscale_delay_s": -1}, f"{ARGS}.target.autoscaling.upscale_delay_s", "at least 0"),
        ("target", {"target_token_latency_s": 1}, f"{ARGS}.target.autoscaling.target_token_latency_s", "latency_ms?"),
        ("gateway", {"min_replicas": 0}, f"{ARGS}.gateway.autoscaling.min_replicas", "at least 1"),
        ("gateway", {"target_in_flight_ratio": 2}, f"{ARGS}.gateway.autoscaling.target_in_flight_ratio", "at most 1"),
    ],
)
def test_a_fault_is_found_with_its_place_and_what_to_do(where: str, scaling: Any, path: str, words: str) -> None:
    data = good()
    section(data, where)["autoscaling"] |= scaling
    found = findings(data)
    assert list(found) == [path]
    assert words in found[path]


@pytest.mark.parametrize(("where", "path"), [("pool", POOL), ("target", f"{ARGS}.target")])
def test_a_number_is_fixed_or_open(where: str, path: str) -> None:
    data = good()
    section(data, where)["replicas"] = 1
    assert findings(data) == {path: f"{path}: replicas cannot stand beside autoscaling: leave one of them out"}


@pytest.mark.parametrize("key", ["num_replicas", "autoscaling_config"])
@pytest.mark.parametrize(
    ("deployment", "own"),
    [("Draft:ngram", "draft_pools[0]"), ("Target", "target"), ("Gateway", "gateway"), ("Controller", "target")],
)
def test_serves_own_keys_must_not_take_the_place_of_ours(deployment: str, own: str, key: str) -> None:
    data = good()
    value = 1 if key == "num_replicas" else {"max_replicas": 2}
    data["applications"][0]["deployments"] = [{"name": deployment, key: value}]
    found = findings(data)
    assert list(found) == [f"applications[0].deployments[0].{key}"]
    if deployment != "Controller":
        assert f"contradicts args.{own}.autoscaling" in found[f"applications[0].deployments[0].{key}"]


def test_a_config_made_of_settings_or_sent_to_a_replica_is_the_same() -> None:
    config = ClusterConfig.model_validate(good()["applications"][0]["args"])
    assert ClusterConfig(draft_pools=config.draft_pools).draft_pools == config.draft_pools
    assert pickle.loads(pickle.dumps(config)) == config
