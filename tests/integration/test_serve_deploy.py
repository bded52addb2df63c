"""`ray serve deploy` on a plain Ray with two CPUs: three draft workers, one target, real gRPC, a tiny model."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from outrider_doubles.process_tree import alive, descendants
from outrider_doubles.ray_head import RayHead, eventually
from outrider_doubles.served_cluster import ServedCluster, write_cyclic_checkpoint
from outrider_doubles.taken_profile import taken_profile
from prometheus_client.parser import text_string_to_metric_families
from typer.testing import CliRunner

from outrider_cluster.cli.main import app
from outrider_cluster.cli.serve_api import ServeApi

pytestmark = pytest.mark.ray

DRAFT_WORKERS = 3


@pytest.fixture(scope="module")
def head() -> Iterator[RayHead]:
    with RayHead() as head:
        yield head


@pytest.fixture(scope="module")
def cluster(head: RayHead, tmp_path_factory: pytest.TempPathFactory) -> ServedCluster:
    folder = tmp_path_factory.mktemp("served")
    cluster = ServedCluster.write(folder, write_cyclic_checkpoint(folder / "tiny"), DRAFT_WORKERS)
    head.serve_until_running(cluster.file)
    cluster.until_linked(DRAFT_WORKERS)
    return cluster


def counter(cluster: ServedCluster, name: str) -> float:
    text = httpx.get(f"{cluster.url}/metrics", timeout=60).text
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    return sum(sample.value for sample in samples if sample.name == name)


def member_pids(cluster: ServedCluster) -> list[list[int]]:
    status = cluster.status()
    return [sorted(one["pid"] for one in status[kind]) for kind in ("targets", "draft_workers", "gateways")]


def controller_pid(head: RayHead) -> int:
    details = httpx.get(f"{head.url}/api/serve/applications/", timeout=60).json()
    (replica,) = details["applications"]["outrider"]["deployments"]["Controller"]["replicas"]
    pid: int = replica["pid"]
    return pid


def test_every_deployment_runs_on_two_cpus(head: RayHead, cluster: ServedCluster) -> None:
    (found,) = ServeApi(head.url).applications()
    counts = {deployment.name: deployment.running for deployment in found.deployments}
    assert counts == {"Controller": 1, "Target": 1, "Gateway": 1, "Draft:ngram": DRAFT_WORKERS}


def test_drafts_are_accepted_and_change_nothing(cluster: ServedCluster) -> None:
    with_drafts = cluster.complete()
    without = cluster.complete(speculation={"max_depth": 0})
    assert with_drafts["metrics"]["speculative_decoding"]["num_accepted_draft_tokens"] > 0
    assert without["metrics"]["speculative_decoding"]["num_draft_tokens"] == 0
    assert with_drafts["choices"] == without["choices"]


def test_sampled_text_is_the_same_with_and_without_drafts(cluster: ServedCluster) -> None:
    sampled = {"temperature": 1.0, "seed": 11}
    assert cluster.text(**sampled) == cluster.text(**sampled, speculation={"max_depth": 0})


def test_serves_own_door_leads_to_the_same_application(cluster: ServedCluster) -> None:
    assert httpx.get(f"{cluster.serve_url}/health", timeout=60).json() == {"status": "ok"}
    assert cluster.text(cluster.serve_url) == cluster.text()


def test_metrics_are_those_of_the_whole_cluster(cluster: ServedCluster) -> None:
    cluster.text()
    eventually(lambda: counter(cluster, "outrider_draft_proposals_total") > 0, 10)
    for name in (
        "vllm:spec_decode_num_drafts_total",
        "vllm:spec_decode_num_accepted_tokens_total",
        "vllm:generation_tokens_total",
        "outrider_committed_tokens_total",
    ):
        assert counter(cluster, name) > 0, name
    assert counter(cluster, "outrider_cluster_members") == DRAFT_WORKERS + 2


def test_killing_every_draft_worker_fails_no_request_and_drafting_comes_back(cluster: ServedCluster) -> None:
    plain = cluster.text(max_tokens=256)
    before = counter(cluster, "outrider_draft_proposals_total")
    killed = frozenset(cluster.draft_pids())
    with ThreadPoolExecutor(6) as pool:
        running = [pool.submit(cluster.text, max_tokens=256) for _ in range(18)]
        for pid in killed:
            os.kill(pid, signal.SIGKILL)
        assert {request.result(120) for request in running} == {plain}
    cluster.until_linked(DRAFT_WORKERS, without=killed)
    assert cluster.complete()["metrics"]["speculative_decoding"]["num_accepted_draft_tokens"] > 0
    assert counter(cluster, "outrider_draft_proposals_total") >= before


def test_requests_go_on_while_the_controller_is_dead_and_its_successor_learns_of_everybody(
    head: RayHead, cluster: ServedCluster
) -> None:
    plain, workers = cluster.text(), cluster.draft_pids()
    os.kill(controller_pid(head), signal.SIGKILL)
    seen_away = False
    for _ in range(1000):
        assert cluster.text() == plain
        assert cluster.draft_pids() == workers
        age_s = cluster.status()["controller_age_s"]
        seen_away = seen_away or age_s > 2
        if seen_away and age_s < 1:
            break
    else:
        pytest.fail("the controller did not come back")
    assert httpx.get(f"{cluster.url}/health", timeout=60).status_code == httpx.codes.OK


def test_a_private_ray_beside_it_is_gone_after_ctrl_c_and_has_disturbed_nothing(
    head: RayHead, cluster: ServedCluster, tmp_path: Path
) -> None:
    own = ServedCluster.write(tmp_path, cluster.file.parent / "tiny", 1)
    started = ServeApi(head.url).applications()
    log = tmp_path / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(Path(sys.executable).with_name("outrider")), "serve", str(own.file)],
            env={**os.environ, "RAY_ADDRESS": head.address, "TMPDIR": str(tmp_path)},
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        eventually(lambda: b"Ctrl-C stops it." in log.read_bytes(), 300, log.read_text)
        family = descendants(process.pid)
        own.until_linked(1)
        assert own.text() == cluster.text()
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        assert process.wait(60) == 0
    finally:
        if process.poll() is None:
            process.kill()
    assert len(family) > 8
    eventually(lambda: not alive(family), 30, lambda: str(alive(family)))
    assert "not stopped in good order" not in log.read_text()
    assert "(loads and probes the model, at the first start compiles its kernels)" in log.read_text()
    assert log.read_text().splitlines()[-1] == "Stopped"
    assert ServeApi(head.url).applications() == started


def wrong_model(args: dict[str, Any], folder: Path) -> str:
    args["model"]["source"] = "/nowhere"
    return "ModelRefused: /nowhere: no such folder"


def step_costs_of_another_model(args: dict[str, Any], folder: Path) -> str:
    path = folder / "profile.json"
    taken = taken_profile(Path(args["model"]["source"]))
    replace(taken, key=replace(taken.key, model="another")).save(path)
    args["controller"] = {"depth": "dynamic", "dynamic": {"profile": str(path)}}
    return "InvalidConfig: controller.dynamic.profile: was taken elsewhere: model is 'another'"


@pytest.mark.parametrize("spoil", [wrong_model, step_costs_of_another_model])
def test_what_cannot_be_served_fails_the_deployment_in_one_line_and_what_runs_goes_on(
    spoil: Callable[[dict[str, Any], Path], str], head: RayHead, cluster: ServedCluster, tmp_path: Path
) -> None:
    data = yaml.safe_load(cluster.file.read_text())
    words = spoil(data["applications"][0]["args"], tmp_path)
    file = tmp_path / "cluster.yaml"
    file.write_text(yaml.safe_dump(data))
    text, before = cluster.text(), member_pids(cluster)
    result = CliRunner().invoke(app, ["deploy", str(file), "--wait", "--address", head.url])
    assert result.exit_code == 1
    assert words in result.stderr.splitlines()[-1]
    assert (cluster.text(), member_pids(cluster)) == (text, before)
    result = CliRunner().invoke(app, ["deploy", str(cluster.file), "--wait", "--address", head.url])
    assert result.exit_code == 0, result.stderr
    assert (cluster.text(), member_pids(cluster)) == (text, before)
