"""`outrider status` against a real gateway."""

from __future__ import annotations

import asyncio
import io
import json

import pytest
from click.testing import Result
from outrider_doubles.gateway_bench import free_ports, gateway_bench
from outrider_doubles.scaling_members import draft, target
from outrider_doubles.scripted_target import MODEL
from rich.console import Console
from typer.testing import CliRunner

from outrider_cluster.cli.main import app
from outrider_cluster.cli.status_report import faults, print_status
from outrider_cluster.gateway.settings import GatewaySettings
from outrider_cluster.gateway.status_page import status_page
from outrider_wire.losses import LossKind, LostWorker, PoolLosses
from outrider_wire.registry import (
    DraftLinkStatus,
    DraftMember,
    Member,
    MemberKind,
    MemberState,
    PoolWishes,
    Snapshot,
    TargetMember,
)
from outrider_wire.scaling import Figure, ScalingDecision


async def status(*options: str, settings: GatewaySettings | None = None) -> Result:
    async with gateway_bench(settings=settings) as bench:
        await bench.next_heartbeats(2)
        url = f"http://127.0.0.1:{bench.gateway.http_port}"
        return await asyncio.to_thread(CliRunner().invoke, app, ["status", "--url", url, *options])


async def test_targets_and_gateways_are_shown() -> None:
    result = await status()
    assert result.exit_code == 0
    assert f"{MODEL}: ready" in result.stdout
    assert "Draft workers" in result.stdout


async def test_json_is_the_gateways_own_page() -> None:
    result = await status("--json")
    page = json.loads(result.stdout)
    assert (result.exit_code, page["model"], page["ready"]) == (0, MODEL, True)


async def test_a_gateway_that_wants_a_key_says_so_and_takes_it() -> None:
    settings = free_ports(api_keys=["k"])
    refused = await status(settings=settings)
    assert refused.exit_code == 1
    assert "answers 401" in refused.stderr
    assert (await status("--api-key", "k", settings=settings)).exit_code == 0


def test_no_gateway_is_one_line_that_says_what_to_do() -> None:
    result = CliRunner().invoke(app, ["status", "--url", "http://127.0.0.1:1"])
    assert result.exit_code == 1
    assert "--url" in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("command", ["status", "top", "tune"])
@pytest.mark.parametrize("url", ["foo", "foo:8000", "http://", "ftp://x", "http://x:y", ""])
def test_an_address_that_is_none_is_refused_in_our_words(command: str, url: str) -> None:
    result = CliRunner().invoke(app, [command, "--url", url])
    expected = f"outrider: --url: got {url or 'nothing'}, expected an address such as http://127.0.0.1:8000\n"
    assert (result.exit_code, result.stderr) == (1, expected)


@pytest.mark.parametrize("command", ["status", "top", "tune", "corpus clear pool"])
@pytest.mark.parametrize("key", ["kä", "two words", "line\nbreak", "\udce4"])
def test_a_key_that_http_cannot_carry_is_refused_as_a_key(command: str, key: str) -> None:
    result = CliRunner().invoke(app, [*command.split(), "--url", "http://127.0.0.1:1", "--api-key", key])
    assert result.exit_code == 2
    told = " ".join(result.stderr.replace("│", " ").split())  # in a box, broken into lines
    assert "--api-key" in told and "a key is printable ASCII without spaces" in told


def test_what_is_not_as_it_should_be_is_said_in_lines_of_its_own() -> None:
    links = (
        DraftLinkStatus("w1", "slow", "quarantined", "too many rows", 0),
        DraftLinkStatus("w2", "fast", "ready", "", 0),
    )
    target = TargetMember(MODEL, 0, 0, 0.0, False, "rows differ", 4, "static", "f", 9, 9, links)
    fault = "ValueError: boom; 3 so far"
    members = (
        Member("t1", MemberKind.TARGET, MemberState.READY, "h:1", "n", 1, target=target),
        Member("w1", MemberKind.DRAFT, MemberState.READY, "h:2", "n", 2, draft=DraftMember("slow", "x", 0, 9, fault)),
        Member("w2", MemberKind.DRAFT, MemberState.READY, "h:3", "n", 3, draft=DraftMember("fast", "x", 0, 9)),
    )
    status = status_page(Snapshot(members), MODEL, ["slow", "fast", "empty"], 0.1)
    written = io.StringIO()
    print_status(status, Console(file=written, width=80))
    assert written.getvalue().splitlines()[-4:] == [
        "pool empty: no worker is ready, so that nothing is drafted there",
        f"draft worker w1 of pool slow: {fault}",
        "target t1: not exact: rows differ",
        "target t1: link to draft worker w1 is quarantined (too many rows)",
    ]


def test_workers_that_a_pool_lost_are_told_with_the_last_ones_fault() -> None:
    leak = LostWorker("w1", LossKind.LEFT, "WorkerOvergrown: too much", 12.4)
    losses = (PoolLosses("leaks", 2, leak), PoolLosses("dies", 1, LostWorker("w2", LossKind.SILENT, "", 3.0)))
    members = (draft("w3", "leaks"), draft("w4", "dies"))
    status = status_page(Snapshot(members, losses=losses), MODEL, ["leaks", "dies"], 0.1)
    assert list(faults(status)) == [
        "pool leaks: lost 2 draft workers, the last 12 s ago: w1 left with a fault: WorkerOvergrown: too much",
        "pool dies: lost 1 draft worker, the last 3 s ago: w2 fell silent: no error of its proposer was told",
    ]


def test_targets_that_differ_in_their_logits_are_named() -> None:
    def target(name: str, fingerprint: str) -> Member:
        facts = TargetMember(MODEL, 0, 0, 0.0, True, "", 4, "static", "f", 9, 9, logits_fingerprint=fingerprint)
        return Member(name, MemberKind.TARGET, MemberState.READY, "h:1", "n", 1, target=facts)

    alike, other = (target("t1", "aa"), target("t2", "aa")), target("t3", "bb")
    assert list(faults(status_page(Snapshot(alike), MODEL, [], 0.1))) == []
    assert list(faults(status_page(Snapshot((*alike, other)), MODEL, [], 0.1))) == [
        "targets differ in their logits, so that answers depend on the target: "
        "t1, t2 with fingerprint aa; t3 with fingerprint bb"
    ]


def test_ids_of_workers_are_never_cut(capsys: pytest.CaptureFixture[str]) -> None:
    worker = "0123456789abcdef" * 2
    facts = DraftMember("ngram", "ngram", 0, 9)
    member = Member(worker, MemberKind.DRAFT, MemberState.READY, "127.0.0.1:54321", "n", 123456, draft=facts)
    status = status_page(Snapshot((member,)), MODEL, ["ngram"], 0.1)
    narrow = io.StringIO()
    print_status(status, Console(file=narrow, width=80))
    assert "…" not in narrow.getvalue()
    print_status(status)
    assert worker in capsys.readouterr().out


def test_decisions_about_replicas_are_shown_and_a_pool_that_sleeps_is_no_fault() -> None:
    decision = ScalingDecision("Draft:p", 0, 0, 0, 4, "no target wants drafts", (Figure("ready", 0.0),))
    status = status_page(Snapshot((), (decision,)), MODEL, ["p"], 0.1)
    assert status["autoscaling"] == [
        {
            "deployment": "Draft:p",
            "running": 0,
            "desired": 0,
            "wanted": 0,
            "min_replicas": 0,
            "max_replicas": 4,
            "reason": "no target wants drafts",
            "figures": {"ready": 0.0},
        }
    ]
    assert list(faults(status)) == []
    written = io.StringIO()
    print_status(status, Console(file=written, width=120))
    assert "no target wants drafts" in written.getvalue()


def test_decisions_acceptance_drops_and_choices_are_shown() -> None:
    wishes = PoolWishes(
        "p", wished=4, late=1, verified=2, answers={"kept": 3, "dropped": 1}, dropped={"stale": 1},
        choices={"best": 3, "spared": 1}, acceptance=(0.75, 0.5),
    )  # fmt: skip
    decided = {"depth_reason": "best goodput", "threshold": 0.125, "predicted_goodput_tokens_per_s": 99.5}
    status = status_page(Snapshot((target("t", wishes, **decided),)), MODEL, ["p", "q"], 0.1)
    written = io.StringIO()
    print_status(status, Console(file=written, width=200))
    for part in ("best goodput  0.125", "99.5", "75% 50%", "25%", "stale 25%", "first 75%, spared 25%"):
        assert part in written.getvalue()
    assert "pool ready expected missed unserved empty dropped asked as" in " ".join(written.getvalue().split())


def test_a_cluster_without_faults_prints_none() -> None:
    assert list(faults(status_page(Snapshot(), MODEL, [], None))) == []
