r"""Measures any OpenAI endpoint under a closed loop of chat requests, and compares arms of one measurement.

    python benchmarks/serving/closed_loop.py --url http://127.0.0.1:8000 --concurrency 1 4 16 \
        --arm 'depth 0={"speculation": {"max_depth": 0}}' --arm 'speculation={}' --out result.json

Each arm is a name and the fields that it adds to the request body; one that is named `NAME@URL` asks another server. At
each concurrency the arms run A-B-B-A, so that what drifts slowly favours none. Servers named by `--pause` stand still
while another one is measured. Prints a Markdown table; `--out` keeps every answer's times besides.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from load_block import LEAST_TURNS, Arm, LoadBlock, Prompt, block_size, mirrored, run_block
from load_report import Row, rows_of
from load_table import markdown_table
from openai_endpoint import open_endpoint
from paused_servers import PausedServers, add_pause_option
from progress_bar import progress_bar

_HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class AskedArm:
    """An arm as the command line asks for it."""

    name: str
    url: str | None
    """None is the server that all arms share."""
    body: Mapping[str, object]


async def measure(options: argparse.Namespace, prompts: Sequence[Prompt]) -> list[LoadBlock]:
    """Run all blocks of a measurement, warm-up first."""
    servers = PausedServers(dict(options.pause))
    async with AsyncExitStack() as stack:
        stack.callback(servers.resume)
        endpoints = {
            url: await open_endpoint(stack, url, max(options.concurrency), options.model)
            for url in dict.fromkeys(arm.url or options.url for arm in options.arm)
        }
        urls = {arm.name: arm.url or options.url for arm in options.arm}
        arms = [Arm(arm.name, endpoints[urls[arm.name]], {**_common_body(options), **arm.body}) for arm in options.arm]
        plan = [(concurrency, arm) for concurrency in options.concurrency for arm in mirrored(arms, options.repeats)]
        sizes = [block_size(options.requests, concurrency) for concurrency, _ in plan]
        with progress_bar() as progress:
            task = progress.add_task("warm-up", total=options.warm_up * len(arms) + sum(sizes))

            async def run(arm: Arm, num_requests: int, concurrency: int) -> LoadBlock:
                await servers.only(urls[arm.name])
                seen = partial(progress.advance, task)
                return await run_block(arm, prompts, num_requests, concurrency, options.seed, seen)

            for arm in arms:
                await run(arm, options.warm_up, max(options.concurrency))
            blocks = []
            for (concurrency, arm), size in zip(plan, sizes, strict=True):
                progress.update(task, description=f"{concurrency} clients, {arm.name}")
                blocks.append(await run(arm, size, concurrency))
    return blocks


def _common_body(options: argparse.Namespace) -> dict[str, object]:
    body: dict[str, object] = {"max_tokens": options.max_tokens, "temperature": options.temperature}
    if options.ignore_eos:
        body["ignore_eos"] = True
    return {**body, **options.extra_body}


def read_prompts(path: Path) -> list[Prompt]:
    """The prompt set in a JSON file: a list of objects with `kind` and `text`."""
    return [Prompt(**entry) for entry in json.loads(path.read_text(encoding="utf-8"))]


def machine_facts() -> dict[str, str]:
    """The machine and the versions that a measurement depends on."""
    facts: dict[str, str] = json.loads(
        subprocess.check_output([sys.executable, str(_HERE.parent / "machine.py"), "--json"])
    )
    return facts


def result_of(options: argparse.Namespace, rows: Sequence[Row], blocks: Sequence[LoadBlock]) -> dict[str, object]:
    """All that is kept of a measurement."""
    return {
        "machine": machine_facts(),
        "options": {
            **{name: str(value) if isinstance(value, Path) else value for name, value in vars(options).items()},
            "arm": [asdict(arm) for arm in options.arm],
        },
        "rows": [asdict(row) for row in rows],
        "blocks": [asdict(block) for block in blocks],
    }


def parse_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--url", required=True, help="base URL of the server, without /v1")
    add("--model", help="served model name (default: the first that the server lists)")
    add("--concurrency", type=int, nargs="+", default=[1, 4, 16], metavar="N", help="clients at once (default: 1 4 16)")
    add(
        "--requests",
        type=int,
        default=32,
        help=f"of a block at least; {LEAST_TURNS} a client besides (default: %(default)s)",
    )
    add("--repeats", type=int, default=5, help="how often the arms run A-B-B-A (default: %(default)s)")
    add("--warm-up", type=int, default=16, help="requests of each arm that are not counted (default: %(default)s)")
    add("--max-tokens", type=int, default=96, help="tokens of an answer at most (default: %(default)s)")
    add("--temperature", type=float, default=0.0, help="(default: %(default)s)")
    add("--seed", type=int, default=1000, help="request i of a block uses seed + i (default: %(default)s)")
    add("--ignore-eos", action="store_true", help="let every answer reach --max-tokens")
    add("--extra-body", type=json.loads, default={}, metavar="JSON", help="fields added to each request of each arm")
    add("--arm", type=_asked_arm, action="append", metavar="NAME[@URL]=JSON", help="an arm and its fields; repeatable")
    add_pause_option(parser)
    add("--prompts", type=Path, default=_HERE / "prompts.json", help="JSON list of {kind, text} (default: bundled)")
    add("--out", type=Path, help="write all figures and times to this JSON file")
    options = parser.parse_args(arguments)
    options.arm = options.arm or [AskedArm("all", None, {})]
    return options


def _asked_arm(text: str) -> AskedArm:
    place, _, body = text.partition("={")
    name, _, url = place.partition("@")
    try:
        return AskedArm(name, url or None, json.loads("{" + body))
    except json.JSONDecodeError:
        raise argparse.ArgumentTypeError(f"expected NAME={{...}} or NAME@URL={{...}}, given {text}") from None


def main() -> None:
    options = parse_options()
    prompts = read_prompts(options.prompts)
    blocks = asyncio.run(measure(options, prompts))
    rows = rows_of(blocks, prompts)
    print(markdown_table(rows))
    if options.out is not None:
        options.out.write_text(json.dumps(result_of(options, rows, blocks), indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
