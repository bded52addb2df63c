"""A target and a draft worker that are taken away while requests run: nobody fails, and no token is lost."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import yaml
from outrider_doubles.crowd import Crowd
from outrider_doubles.ray_head import RayHead, eventually
from outrider_doubles.served_cluster import ServedCluster, write_cyclic_checkpoint

pytestmark = pytest.mark.ray


@pytest.fixture(scope="module")
def head() -> Iterator[RayHead]:
    with RayHead() as head:
        yield head


def deploy(head: RayHead, cluster: ServedCluster, replicas: int) -> None:
    """Serve's own key changes the number of replicas and restarts none."""
    data = yaml.safe_load(cluster.file.read_text())
    names = ("Target", "Draft:ngram")
    data["applications"][0]["deployments"] = [{"name": name, "num_replicas": replicas} for name in names]
    cluster.file.write_text(yaml.safe_dump(data))
    head.serve_deploy(cluster.file)


def counts(cluster: ServedCluster) -> tuple[int, int]:
    """Ready targets and draft workers."""
    status = cluster.status()
    ready = [sum(one["state"] == "ready" for one in status[kind]) for kind in ("targets", "draft_workers")]
    return ready[0], ready[1]


def accepted(cluster: ServedCluster) -> int:
    """Draft tokens that were accepted of one more request; how many come in time is not what is tested here."""
    count: int = cluster.complete()["metrics"]["speculative_decoding"]["num_accepted_draft_tokens"]
    return count


def test_requests_outlive_replicas_that_are_taken_away(head: RayHead, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("drained")
    cluster = ServedCluster.write(folder, write_cyclic_checkpoint(folder / "tiny"), 2)
    deploy(head, cluster, 2)
    eventually(head.is_running, 300)
    eventually(lambda: counts(cluster) == (2, 2), 120, lambda: str(cluster.status()))
    cluster.until_linked(2)
    plain = cluster.text(max_tokens=256, speculation={"max_depth": 0})
    with Crowd(lambda: cluster.text(max_tokens=256), clients=4) as crowd:
        eventually(lambda: len(crowd.answers) >= 4, 60)
        deploy(head, cluster, 1)
        eventually(lambda: counts(cluster) == (1, 1), 120, lambda: str(cluster.status()))
        before = len(crowd.answers)
        eventually(lambda: len(crowd.answers) >= before + 8, 60)
    assert set(crowd.answers) == {plain}
    eventually(lambda: accepted(cluster) > 0, 60, lambda: str(cluster.status()))
