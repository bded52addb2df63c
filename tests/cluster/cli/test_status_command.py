"""`outrider status` against a real gateway."""

from __future__ import annotations

import asyncio
import json

from click.testing import Result
from outrider_doubles.gateway_bench import free_ports, gateway_bench
from outrider_doubles.scripted_target import MODEL
from typer.testing import CliRunner

from outrider_cluster.cli.main import app
from outrider_cluster.gateway.settings import GatewaySettings


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
