r"""Says whether the dynamic depth keeps up with no speculation, static depths and a table, live and in one measurement.

    python benchmarks/control/compare_depths.py --concurrency 1 8 32 --out depths.json

Serves copies of a cluster file: one for all static depths, which requests set themselves (a static policy gives every
row the smaller of its depth and the request's, so that this is the policy of that depth), one with a table, one
dynamic. While one is measured the others stand still. Arms run A-B-B-A, each round beginning with the next arm. Prints
tables and a verdict; exits with 1 where the dynamic depth falls short.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import neighbours  # noqa: F401
from closed_loop import machine_facts, read_prompts
from control_options import cluster_of, control_parser, keep
from depth_verdict import DYNAMIC, TABLE, Comparison, Finding, comparisons, static_name, verdict_table, verdict_text
from load_block import LEAST_TURNS, Arm, LoadBlock, Prompt, block_size, mirrored, run_block
from load_report import rows_of
from load_table import markdown_table
from openai_endpoint import OpenAIEndpoint, open_endpoint
from policy_server import Policy, PolicyServer, served_under
from progress_bar import progress_bar

_STATIC = "static"


@dataclass(frozen=True, slots=True)
class ServedArm:
    """An arm and who answers it."""

    arm: Arm
    server: PolicyServer


async def measure(
    options: argparse.Namespace, prompts: Sequence[Prompt], servers: Mapping[str, PolicyServer]
) -> list[LoadBlock]:
    """Run all blocks, warm-up first; the servers stand still but for the one that is measured."""
    async with AsyncExitStack() as stack:
        endpoints = {
            name: await open_endpoint(stack, server.url, max(options.concurrency)) for name, server in servers.items()
        }
        arms = [ServedArm(arm, servers[_server_name(arm)]) for arm in arms_of(options, endpoints)]
        plan = [(clients, served) for clients in options.concurrency for served in turned(arms, options.rounds)]
        sizes = [block_size(options.requests, clients) for clients, _ in plan]
        with progress_bar() as progress:
            task = progress.add_task("warm-up", total=options.warm_up * len(arms) + sum(sizes))

            async def run(served: ServedArm, num_requests: int, clients: int) -> LoadBlock:
                for other in servers.values():
                    if other is not served.server:
                        other.pause()
                await served.server.wake()
                seen = partial(progress.advance, task)
                return await run_block(served.arm, prompts, num_requests, clients, options.seed, seen)

            for served in arms:
                await run(served, options.warm_up, max(options.concurrency))
            blocks = []
            for (clients, served), size in zip(plan, sizes, strict=True):
                progress.update(task, description=f"{clients} clients, {served.arm.name}")
                blocks.append(await run(served, size, clients))
    return blocks


def arms_of(options: argparse.Namespace, endpoints: Mapping[str, OpenAIEndpoint]) -> list[Arm]:
    """Depth 0, the static depths, the table and the dynamic depth, as requests ask for them."""
    common = {"max_tokens": options.max_tokens, "temperature": 0.0}
    pool = {} if options.pool is None else {"pool": options.pool}
    static = [
        Arm(static_name(depth), endpoints[_STATIC], {**common, "speculation": {**pool, "max_depth": depth}})
        for depth in (0, *options.static)
    ]
    others = {**common, "speculation": pool}
    return [*static, *(Arm(name, endpoints[name], others) for name in (TABLE, DYNAMIC))]


def turned(arms: Sequence[ServedArm], rounds: int) -> list[ServedArm]:
    """A-B-B-A in each round, beginning with the next arm, so that no arm is always the first or in the middle."""
    turns = ([*arms[start % len(arms) :], *arms[: start % len(arms)]] for start in range(rounds))
    return [arm for turn in turns for arm in mirrored(turn, 1)]


def _server_name(arm: Arm) -> str:
    return arm.name if arm.name in (TABLE, DYNAMIC) else _STATIC


def policies(options: argparse.Namespace) -> list[Policy]:
    """The policies that have a server."""
    deepest = max(options.static)
    table = tuple((start, end, depth) for start, end, depth in options.table)
    table_depth = max(1, *(depth for _, _, depth in table))
    return [
        Policy(_STATIC, "static", deepest),
        Policy(TABLE, "static", table_depth, table),
        Policy(DYNAMIC, "dynamic", deepest),
    ]


def result_of(
    options: argparse.Namespace, blocks: Sequence[LoadBlock], found: Sequence[Comparison], prompts: Sequence[Prompt]
) -> dict[str, Any]:
    """All that is kept of a measurement."""
    asked = {name: str(value) if isinstance(value, Path) else value for name, value in vars(options).items()}
    return {
        "machine": machine_facts(),
        "options": asked,
        "verdict": verdict_text(found),
        "comparisons": [
            {**asdict(one), "finding": None if one.finding is None else one.finding.value} for one in found
        ],
        "rows": [asdict(row) for row in rows_of(blocks, prompts)],
        "blocks": [
            {"arm": block.arm, "concurrency": block.concurrency, "busy_s": block.busy_s, "speed": block.tokens_per_s}
            for block in blocks
        ],
    }


def parse_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = control_parser(__doc__, ports=30)
    add = parser.add_argument
    add("--concurrency", type=int, nargs="+", default=[1, 8, 32], metavar="N", help="clients (default: 1 8 32)")
    add("--static", type=int, nargs="+", default=[1, 2, 4, 8], metavar="K", help="static depths (default: 1 2 4 8)")
    add("--table", type=json.loads, default=[[1, 4, 5], [5, 8, 4], [9, 16, 3], [17, 31, 1], [32, 512, 0]],
        metavar="JSON", help="num_speculative_tokens_per_batch_size (default: %(default)s)")  # fmt: skip
    add("--rounds", type=int, default=5, help="A-B-B-A rounds at each concurrency (default: %(default)s)")
    add(
        "--requests",
        type=int,
        default=16,
        help=f"of a block at least; {LEAST_TURNS} a client besides (default: %(default)s)",
    )
    add("--warm-up", type=int, default=16, help="requests of each arm that are not counted (default: %(default)s)")
    add("--pool", help="draft pool that requests ask for (default: all)")
    return parser.parse_args(arguments)


def main() -> int:
    """Returns the exit code."""
    options = parse_options()
    prompts = read_prompts(options.prompts)
    cluster = cluster_of(options)
    with ExitStack() as stack:
        servers: dict[str, PolicyServer] = {}
        for index, policy in enumerate(policies(options)):
            content = served_under(cluster, policy, options.first_port + 10 * index)
            servers[policy.name] = stack.enter_context(PolicyServer(content))
        blocks = asyncio.run(measure(options, prompts, servers))
    found = comparisons(blocks, [static_name(depth) for depth in options.static])
    print(f"{markdown_table(rows_of(blocks, prompts))}\n\n{verdict_table(found)}\n\n{verdict_text(found)}")
    keep(result_of(options, blocks, found, prompts), options)
    return 1 if any(comparison.finding is Finding.FALLS_SHORT for comparison in found) else 0


if __name__ == "__main__":
    sys.exit(main())
