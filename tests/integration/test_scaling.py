"""Replica control on a plain Ray with two CPUs: a pool at zero comes up when a target wants drafts, and goes again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import yaml
from outrider_doubles.crowd import Crowd
from outrider_doubles.ray_head import RayHead, eventually
from outrider_doubles.served_cluster import ServedCluster, write_cyclic_checkpoint
from prometheus_client.parser import text_string_to_metric_families

pytestmark = pytest.mark.ray

POOL = "Draft:ngram"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedCluster]:
    folder = tmp_path_factory.mktemp("scaled")
    cluster = ServedCluster.write(folder, write_cyclic_checkpoint(folder / "tiny"), 1)
    data = yaml.safe_load(cluster.file.read_text())
    args = data["applications"][0]["args"]
    del args["draft_pools"][0]["replicas"]
    args["draft_pools"][0]["autoscaling"] = {
        "min_replicas": 0,
        "max_replicas": 2,
        "downscale_to_zero_delay_s": 2,
    }
    cluster.file.write_text(yaml.safe_dump(data))
    with RayHead() as head:
        head.serve_until_running(cluster.file)
        yield cluster


def decision(cluster: ServedCluster) -> dict[str, Any]:
    (found,) = cluster.status()["autoscaling"] or ({"desired": None},)
    return dict(found)


def accepted(cluster: ServedCluster) -> int:
    """Draft tokens that were accepted of one more request. How many come in time is not what is tested here."""
    count: int = cluster.complete()["metrics"]["speculative_decoding"]["num_accepted_draft_tokens"]
    return count


def desired_metric(cluster: ServedCluster) -> float | None:
    text = httpx.get(f"{cluster.url}/metrics", timeout=60).text
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    found = (s.value for s in samples if s.name == "outrider_autoscaling_desired_replicas")
    return next(found, None)


def test_a_pool_wakes_when_drafts_are_wanted_and_sleeps_again_and_no_request_notices(cluster: ServedCluster) -> None:
    eventually(lambda: decision(cluster)["desired"] == 0, 30, lambda: str(cluster.status()))
    assert cluster.draft_pids() == set()
    assert decision(cluster) | {"figures": None} == {
        "deployment": POOL,
        "running": 0,
        "desired": 0,
        "wanted": 0,
        "min_replicas": 0,
        "max_replicas": 2,
        "reason": "no target wants drafts",
        "figures": None,
    }
    plain = cluster.text(speculation={"max_depth": 0})
    with Crowd(cluster.text) as crowd:
        eventually(lambda: bool(cluster.linked_pids()), 60, lambda: str(cluster.status()))
        assert desired_metric(cluster) == 1
        eventually(lambda: accepted(cluster) > 0, 60, lambda: str(cluster.status()))
        workers = cluster.draft_pids()
    eventually(lambda: not cluster.draft_pids(), 60, lambda: str(cluster.status()))
    assert len(workers) == 1
    assert decision(cluster)["desired"] == 0
    assert len(crowd.answers) > 0
    assert set(crowd.answers) == {plain}
