"""One request to a gateway has every draft worker of a pool forget, over real gRPC."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import Result
from outrider_doubles.draft_bench import FINGERPRINT, VOCAB_SIZE
from outrider_doubles.gateway_bench import GatewayBench, gateway_bench
from typer.testing import CliRunner

from outrider_cluster.cli.main import app
from outrider_draft.identity import WorkerIdentity
from outrider_draft.methods import parse_pool
from outrider_draft.worker import DraftWorker
from outrider_wire.registry import DraftMember, Member, MemberKind, MemberState

POOLS = ("mine", "other", "copy")


@dataclass
class Running:
    """A gateway, two workers of pool `mine`, one of `other`, and one of `copy`, which remembers nothing."""

    bench: GatewayBench
    workers: list[DraftWorker]

    @property
    def documents(self) -> list[float | None]:
        """How many each worker remembers."""
        return [
            worker.registry.get_sample_value("outrider_draft_corpus_documents", {"pool": worker.status().pool})
            for worker in self.workers
        ]

    async def run(self, *arguments: str) -> Result:
        """The command line, from another thread."""
        url = f"http://127.0.0.1:{self.bench.gateway.http_port}"
        return await asyncio.to_thread(CliRunner().invoke, app, ["corpus", "clear", *arguments, "--url", url])


def member(worker: DraftWorker, address: str, state: MemberState = MemberState.READY) -> Member:
    return Member(worker.incarnation, MemberKind.DRAFT, state, address, "node", 1, draft=worker.status())


@asynccontextmanager
async def running(folder: Path) -> AsyncIterator[Running]:
    file = folder / "corpus.jsonl"
    file.write_text("[1, 2, 3]\n", encoding="utf-8")
    suffix = {"method": "suffix", "max_corpus_bytes": "1MiB", "corpus_files": [str(file)]}
    pools = [{"name": "mine", **suffix}, {"name": "mine", **suffix}, {"name": "other", **suffix}]
    pools.append({"name": "copy", "method": "ngram"})
    workers = [DraftWorker(parse_pool(pool), WorkerIdentity(FINGERPRINT, VOCAB_SIZE)) for pool in pools]
    try:
        async with gateway_bench(pools=POOLS) as bench:
            states = [MemberState.READY, MemberState.DRAINING, MemberState.READY, MemberState.READY]
            bench.controller.members += [
                member(worker, await worker.start(), state) for worker, state in zip(workers, states, strict=True)
            ]
            await bench.next_heartbeats(2)
            yield Running(bench, workers)
    finally:
        for worker in workers:
            await worker.stop(grace_s=0)


async def test_all_workers_of_a_pool_forget_and_no_others(tmp_path: Path) -> None:
    async with running(tmp_path) as found:
        assert found.documents == [1, 1, 1, None]
        answer = await found.bench.http.delete("/outrider/v1/corpus/mine")
        assert answer.status_code == 200
        names = [worker.incarnation for worker in found.workers[:2]]
        assert answer.json() == {"pool": "mine", "workers": [{"worker": name, "remembers": True} for name in names]}
        assert found.documents == [0, 0, 1, None]


async def test_the_command_says_how_many_had_something_to_forget(tmp_path: Path) -> None:
    async with running(tmp_path) as found:
        result = await found.run("mine")
        assert (result.exit_code, result.stdout) == (0, "pool mine: 2 of 2 workers had a corpus, which is cleared\n")
        assert found.documents == [0, 0, 1, None]
        result = await found.run("copy")
        assert (result.exit_code, result.stdout) == (0, "pool copy: nothing to clear\n")


async def test_a_worker_that_does_not_answer_is_named_and_the_others_have_forgotten(tmp_path: Path) -> None:
    async with running(tmp_path) as found:
        dead = DraftMember("mine", "suffix", 0, 1)
        gone = Member("gone", MemberKind.DRAFT, MemberState.READY, "127.0.0.1:1", "node", 1, draft=dead)
        found.bench.controller.members.append(gone)
        await found.bench.next_heartbeats(2)
        result = await found.run("mine")
        assert result.exit_code == 1
        assert "answers 503: pool mine: 2 of 3 workers have forgotten; call again for gone at 127.0.0.1:1: " in (
            result.stderr
        )
        assert found.documents == [0, 0, 1, None]


@pytest.mark.parametrize("pool", ["mien", "a/b", ""])
async def test_a_pool_that_is_not_there_is_refused(pool: str, tmp_path: Path) -> None:
    async with running(tmp_path) as found:
        result = await found.run(pool)
        assert result.exit_code == 1
        assert "answers 4" in result.stderr
        if pool == "mien":
            assert 'pool: got "mien", allowed: mine, other, copy' in result.stderr
        assert found.documents == [1, 1, 1, None]


def test_without_a_gateway_the_command_says_so() -> None:
    result = CliRunner().invoke(app, ["corpus", "clear", "mine", "--url", "http://127.0.0.1:1"])
    assert result.exit_code == 1
    assert "no gateway answers" in result.stderr
