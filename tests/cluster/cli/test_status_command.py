"""`outrider status` against a real gateway."""

from __future__ import annotations

import asyncio
import io
import json

from click.testing import Result
from outrider_doubles.gateway_bench import free_ports, gateway_bench
from outrider_doubles.scripted_target import MODEL
from rich.console import Console
from typer.testing import CliRunner

from outrider_cluster.cli.main import app
from outrider_cluster.cli.status_report import faults, print_status
from outrider_cluster.gateway.settings import GatewaySettings
from outrider_cluster.gateway.status_page import status_page
from outrider_wire.registry import (
    DraftLinkStatus,
    DraftMember,
    Member,
    MemberKind,
    MemberState,
    Snapshot,
    TargetMember,
)


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


def test_a_cluster_without_faults_prints_none() -> None:
    assert list(faults(status_page(Snapshot(), MODEL, [], None))) == []
