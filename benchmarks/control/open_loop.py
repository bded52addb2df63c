r"""Measures depth 0, a static depth and the dynamic one while requests arrive faster and faster, until past saturation.

    python benchmarks/control/open_loop.py --first-rate 0.5 --seconds 30 --out open.json --plots open

Serves two copies of a cluster file, one static and one dynamic; what is not measured stands still. Arrivals are a
Poisson process, the same one for every arm; each rate is twice the one before, until all arms are saturated. Prints a
table and draws depth, its reason, and throughput over the rate.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import httpx
from rich.progress import Progress

import neighbours  # noqa: F401
from closed_loop import machine_facts, read_prompts
from control_options import cluster_of, control_parser, keep
from depth_verdict import DYNAMIC, PLAIN, static_name
from depth_watch import DepthWatch
from load_block import Arm, Prompt, run_block
from open_report import OpenRow, depth_points, markdown_table, open_row, speed_points
from openai_endpoint import OpenAIEndpoint, open_endpoint
from outrider_cluster.reports.figures import curves, depth_over_load
from poisson_load import arrival_times, run_open
from policy_server import Policy, PolicyServer, served_under
from progress_bar import progress_bar

_STATIC = "static"
_CONNECTIONS = 256
_WARM_UP_CLIENTS = 8
_RATE_LABEL = "requests a second"


@dataclass(slots=True)
class OpenLoop:
    """Servers, arms and what they are asked."""

    options: argparse.Namespace
    prompts: Sequence[Prompt]
    servers: Mapping[str, PolicyServer]
    arms: list[Arm]
    dynamic: httpx.AsyncClient
    """Of the dynamic server, for its status."""

    async def warm_up(self) -> None:
        """Ask every arm every prompt."""
        for arm in self.arms:
            await self._let_run_alone(arm)
            await run_block(arm, self.prompts, len(self.prompts), _WARM_UP_CLIENTS, self.options.seed, lambda: None)

    async def rows(self) -> list[OpenRow]:
        """Rate after rate; neighbouring ones take the arms in opposite orders."""
        found: list[OpenRow] = []
        rate_per_s, arms = self.options.first_rate, self.arms
        with progress_bar() as progress:
            while rate_per_s <= self.options.last_rate:
                rows = [await self._row(arm, rate_per_s, progress) for arm in arms]
                found += rows
                if all(row.is_saturated for row in rows):
                    break
                rate_per_s, arms = rate_per_s * self.options.growth, arms[::-1]
        return found

    async def _row(self, arm: Arm, rate_per_s: float, progress: Progress) -> OpenRow:
        arrivals_s = arrival_times(rate_per_s, self.options.seconds, self.options.seed)
        task = progress.add_task(f"{rate_per_s:g} requests/s, {arm.name}", total=len(arrivals_s))
        await self._let_run_alone(arm)
        load = run_open(arm, self.prompts, arrivals_s, rate_per_s, self.options.seed, partial(progress.advance, task))
        if arm.name != DYNAMIC:
            return open_row(await load, ())
        watch = DepthWatch(self.dynamic)
        async with watch.running():
            block = await load
        return open_row(block, watch.samples)

    async def _let_run_alone(self, arm: Arm) -> None:
        name = _server_name(arm.name)
        for other, server in self.servers.items():
            if other != name:
                server.pause()
        await self.servers[name].wake()


def _server_name(arm: str) -> str:
    return arm if arm == DYNAMIC else _STATIC


def arms_of(options: argparse.Namespace, endpoints: Mapping[str, OpenAIEndpoint]) -> list[Arm]:
    """Depth 0, the static depth, and the dynamic one."""
    body = {"max_tokens": options.max_tokens, "temperature": 0.0}
    pool = {"pool": options.pool} if options.pool else {}
    static = {PLAIN: 0, static_name(options.static): options.static}
    return [
        *(
            Arm(name, endpoints[_STATIC], {**body, "speculation": {**pool, "max_depth": depth}})
            for name, depth in static.items()
        ),
        Arm(DYNAMIC, endpoints[DYNAMIC], {**body, "speculation": pool}),
    ]


async def measure(
    options: argparse.Namespace, prompts: Sequence[Prompt], servers: Mapping[str, PolicyServer]
) -> list[OpenRow]:
    """All figures."""
    async with AsyncExitStack() as stack:
        endpoints = {name: await open_endpoint(stack, one.url, _CONNECTIONS) for name, one in servers.items()}
        client = await stack.enter_async_context(httpx.AsyncClient(base_url=servers[DYNAMIC].url))
        loop = OpenLoop(options, prompts, servers, arms_of(options, endpoints), client)
        await loop.warm_up()
        return await loop.rows()


def draw(rows: Sequence[OpenRow], folder: Path) -> None:
    """Write the plots as PNG files."""
    folder.mkdir(parents=True, exist_ok=True)
    depth_over_load(depth_points(rows, DYNAMIC), _RATE_LABEL).savefig(folder / "depth_over_rate.png", dpi=120)
    curves(speed_points(rows), _RATE_LABEL, "tokens a second").savefig(folder / "throughput.png", dpi=120)


def result_of(options: argparse.Namespace, rows: Sequence[OpenRow]) -> dict[str, object]:
    """All that is kept of a measurement."""
    asked = {name: str(value) if isinstance(value, Path) else value for name, value in vars(options).items()}
    return {"machine": machine_facts(), "options": asked, "rows": [asdict(row) for row in rows]}


def parse_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = control_parser(__doc__, ports=20, max_tokens=64)
    add = parser.add_argument
    add("--static", type=int, default=4, help="the static depth (default: %(default)s)")
    add("--max-depth", type=int, default=8, help="num_speculative_tokens of the dynamic one (default: %(default)s)")
    add("--first-rate", type=float, default=0.5, help="requests a second (default: %(default)s)")
    add("--growth", type=float, default=2.0, help="from one rate to the next (default: %(default)s)")
    add("--last-rate", type=float, default=32.0, help="no rate is higher (default: %(default)s)")
    add("--seconds", type=float, default=30.0, help="of arrivals at each rate (default: %(default)s)")
    add("--pool", default="ngram", help="draft pool that requests ask for; empty: all (default: %(default)s)")
    add("--plots", type=Path, help="draw plots into this folder")
    return parser.parse_args(arguments)


def main() -> None:
    options = parse_options()
    prompts = read_prompts(options.prompts)
    cluster = cluster_of(options)
    policies = [Policy(_STATIC, "static", options.static), Policy(DYNAMIC, "dynamic", options.max_depth)]
    with ExitStack() as stack:
        servers: dict[str, PolicyServer] = {}
        for index, policy in enumerate(policies):
            content = served_under(cluster, policy, options.first_port + 10 * index)
            servers[policy.name] = stack.enter_context(PolicyServer(content))
        rows = asyncio.run(measure(options, prompts, servers))
    print(markdown_table(rows))
    if options.plots is not None:
        draw(rows, options.plots)
    keep(result_of(options, rows), options)


if __name__ == "__main__":
    main()
