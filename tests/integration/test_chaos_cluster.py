"""Real Ray, gRPC and HTTP: lying, stopped and killed workers of racing pools change no answer and leave nothing."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from random import Random
from typing import Any, Self

import pytest
from outrider_doubles.chaos_cluster import CROWDED, INTRUDERS, WORKERS, ChaosCluster, deploy_chaos_cluster
from outrider_doubles.chaos_crowd import Answered, Oracle, answers_alone, crowd, requests
from outrider_doubles.chaos_intruder import intruder
from outrider_doubles.chaos_lies import HARMLESS, SHOWN_BY, lie_named
from outrider_doubles.hostile_drafter import DrafterFacts, HostileDrafter
from outrider_doubles.racing_pools import POOL_NAMES
from outrider_doubles.ray_head import RayHead
from outrider_doubles.tiny_tokenizer import TINY_VOCAB_SIZE

from outrider_runtime.text.tokenizer import Tokenizer

pytestmark = pytest.mark.ray

REQUESTS = 14
EVENTS = 14


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("chaos")


@pytest.fixture(scope="module")
def cluster(folder: Path) -> Iterator[ChaosCluster]:
    with RayHead() as head:
        yield deploy_chaos_cluster(head, folder)


@pytest.fixture(scope="module")
def answers() -> list[Answered]:
    """Filled by the first test that needs them: they are the answers of this very cluster."""
    return []


@pytest.fixture
async def known(cluster: ChaosCluster, answers: list[Answered]) -> AsyncIterator[list[Answered]]:
    """The answers without drafts. After each test the cluster must be at rest, with the processes that it had."""
    if not answers:
        answers += await answers_alone(cluster, requests(REQUESTS))
    before = served_by(await cluster.until(lambda status: len(linked(status)) == WORKERS))
    yield answers
    await cluster.until_at_rest()
    assert served_by(cluster.served.status()) == before


def served_by(status: dict[str, Any]) -> list[str]:
    """Targets and gateways, by their incarnations."""
    return [process["worker"] for process in (*status["targets"], *status["gateways"])]


def linked(status: dict[str, Any]) -> dict[str, int]:
    """Real draft workers whose links are ready, and their process ids."""
    ready = {
        link["worker"] for target in status["targets"] for link in target["draft_links"] if link["state"] == "ready"
    }
    workers = [worker for worker in status["draft_workers"] if worker["pool"] in POOL_NAMES]
    return {worker["worker"]: worker["pid"] for worker in workers if worker["worker"] in ready}


def drafter(folder: Path, name: str, pool: str, known: list[Answered]) -> HostileDrafter:
    fingerprint = Tokenizer.from_folder(folder / "tiny").fingerprint
    facts = DrafterFacts(name, pool, fingerprint, TINY_VOCAB_SIZE)
    return HostileDrafter(lie_named("honest"), facts, Oracle(known))


async def test_answers_are_those_without_drafts_while_drafts_are_accepted_and_requests_preempted_and_cancelled(
    cluster: ChaosCluster, known: list[Answered]
) -> None:
    preempted = await cluster.counted("vllm:num_preemptions_total")
    async with crowd(cluster, known, seed=0) as clients:
        await clients.until_accepted_of_each_pool(40)
        await cluster.until_counted("vllm:num_preemptions_total", preempted)
        await clients.pieces(1000)
    assert clients.cancelled > 0


@pytest.mark.parametrize("name", SHOWN_BY)
async def test_a_lie_is_counted_and_changes_no_answer(
    cluster: ChaosCluster, folder: Path, known: list[Answered], name: str
) -> None:
    counter, *reasons = SHOWN_BY[name]
    label = {"quarantines": "offence"}.get(counter, "reason")
    labels = {"pool": (INTRUDERS,), **({label: tuple(reasons)} if reasons else {})}
    before = await cluster.counted(f"outrider_draft_link_{counter}_total", **labels)
    liar = drafter(folder, f"liar-{name}", INTRUDERS, known)
    liar.lie = lie_named(name)
    async with crowd(cluster, known, seed=1) as clients, intruder(liar, cluster.controller):
        await cluster.until_counted(f"outrider_draft_link_{counter}_total", before, **labels)
        await clients.until_accepted(20)
    assert liar.slips == []


@pytest.mark.parametrize("seed", range(2))
async def test_stops_kills_and_lies_at_random_rounds_change_no_answer_and_drafting_comes_back(
    cluster: ChaosCluster, folder: Path, known: list[Answered], seed: int
) -> None:
    random = Random(seed)
    liars = [drafter(folder, f"liar-{seed}-{pool}", pool, known) for pool in (CROWDED, INTRUDERS)]
    async with crowd(cluster, known, seed) as clients:
        async with AsyncExitStack() as stack:
            workers = stack.enter_context(Victims(cluster))
            for liar in liars:
                await stack.enter_async_context(intruder(liar, cluster.controller))
            for event in range(EVENTS):
                for liar in liars:
                    liar.lie = lie_named(random.choice([*SHOWN_BY, *HARMLESS]))
                workers.suffer(random, everybody_dies=event == EVENTS // 2)
                await clients.pieces(random.randrange(20, 300))
        status = await cluster.until(lambda status: len(linked(status)) == WORKERS)
        assert workers.killed and not workers.killed & set(linked(status).values())
        await clients.until_accepted_of_each_pool(40)
    assert clients.cancelled > 0
    assert [slip for liar in liars for slip in liar.slips] == []


class Victims:
    """The real draft workers, to be stopped, resumed and killed. On the way out all that live go on."""

    def __init__(self, cluster: ChaosCluster) -> None:
        self._cluster = cluster
        self._stopped: set[int] = set()
        self.killed: set[int] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._resume()

    def suffer(self, random: Random, everybody_dies: bool) -> None:
        """Something happens to one of them, or the worst to all."""
        workers = self._cluster.served.status()["draft_workers"]
        listed = [worker["pid"] for worker in workers if worker["pool"] in POOL_NAMES and worker["pid"] > 1]
        if everybody_dies:
            self.killed.update(listed, self._stopped)
            self._send(signal.SIGKILL, self.killed)
        elif random.random() < 0.7 and listed:
            self._stopped.add(random.choice(listed))
            self._send(signal.SIGSTOP, self._stopped)
        else:
            self._resume()

    def _resume(self) -> None:
        self._send(signal.SIGCONT, self._stopped)
        self._stopped.clear()

    def _send(self, number: signal.Signals, pids: Iterable[int]) -> None:
        for pid in pids:
            with suppress(ProcessLookupError):  # killed before
                os.kill(pid, number)
