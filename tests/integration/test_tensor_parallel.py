"""Two targets of two ranks each on a real Ray: a rank that dies or hangs takes its target with it, and no request."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from outrider_doubles.process_tree import Process, alive, descendants
from outrider_doubles.ray_head import RayHead, eventually
from outrider_doubles.served_cluster import ServedCluster, write_cyclic_checkpoint

pytestmark = pytest.mark.ray

TARGETS = 2
BOUND_S = 120


@pytest.fixture(scope="module")
def head() -> Iterator[RayHead]:
    with RayHead() as head:
        yield head


@pytest.fixture(scope="module")
def cluster(head: RayHead, tmp_path_factory: pytest.TempPathFactory) -> ServedCluster:
    folder = tmp_path_factory.mktemp("split")
    split = {"tensor_parallel_size": 2, "replicas": TARGETS, "rank_timeout_s": 3}
    cluster = ServedCluster.write(folder, write_cyclic_checkpoint(folder / "tiny"), 1, **split)
    head.serve_until_running(cluster.file)
    cluster.until_linked(1)
    return cluster


def rank_processes(head: RayHead) -> set[Process]:
    """Those of ranks besides rank 0, of all targets."""
    return {process for process in descendants(head.pid) if b"RankActor" in command(process.pid)}


def command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def targets(cluster: ServedCluster) -> dict[str, int]:
    """Those that are ready, and their process ids."""
    return {target["worker"]: target["pid"] for target in cluster.status()["targets"] if target["state"] == "ready"}


def test_drafts_change_nothing_with_two_ranks(head: RayHead, cluster: ServedCluster) -> None:
    assert len(rank_processes(head)) == TARGETS
    with_drafts = cluster.complete()
    assert with_drafts["metrics"]["speculative_decoding"]["num_accepted_draft_tokens"] > 0
    assert with_drafts["choices"] == cluster.complete(speculation={"max_depth": 0})["choices"]
    sampled = {"temperature": 1.0, "seed": 11}
    assert cluster.text(**sampled) == cluster.text(**sampled, speculation={"max_depth": 0})


@pytest.mark.parametrize("fate", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "hung"])
def test_a_lost_rank_fails_no_request_and_its_target_is_replaced_as_a_whole(
    head: RayHead, cluster: ServedCluster, fate: signal.Signals
) -> None:
    eventually(lambda: len(targets(cluster)) == TARGETS, BOUND_S, lambda: str(cluster.status()))
    plain = cluster.text(max_tokens=256)
    before, ranks = targets(cluster), rank_processes(head)
    victim = next(iter(ranks))
    with ThreadPoolExecutor(6) as pool:
        running = [pool.submit(cluster.text, max_tokens=256) for _ in range(12)]
        os.kill(victim.pid, fate)
        assert {request.result(BOUND_S) for request in running} == {plain}
    eventually(
        lambda: len(targets(cluster)) == TARGETS and len(before.keys() & targets(cluster).keys()) == TARGETS - 1,
        BOUND_S,
        lambda: str(cluster.status()),
    )
    (gone,) = (pid for worker, pid in before.items() if worker not in targets(cluster))
    eventually(lambda: not alive([victim]), 30, lambda: f"the rank {victim} is still there")
    eventually(lambda: b"ServeReplica" not in command(gone), 30, lambda: f"rank 0 {gone} is still there")
    eventually(lambda: len(rank_processes(head)) == TARGETS, 30, lambda: str(rank_processes(head)))
    assert len(rank_processes(head) & ranks) == TARGETS - 1
    assert cluster.text(max_tokens=256) == plain
