r"""Shows that the depth falls to 0 when drafts become useless, that only probes draft there, and that it comes back.

    python benchmarks/control/collapse.py --clients 4 --seconds 40 --out collapse.json

Serves a copy of a cluster file with a dynamic depth and one pool of a proposer that is useless while a file exists.
After a warm-up, drafts are good, useless, and good again, under one closed loop. Exits with 1 if the depth does not
fall, if then more than probes is drafted, or if it does not come back.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import httpx

import neighbours  # noqa: F401
from closed_loop import machine_facts, read_prompts
from collapse_verdict import Bounds, Spell, collapse_checks
from control_options import cluster_of, control_parser, keep
from depth_timeline import timeline
from depth_watch import DepthWatch
from load_block import Prompt
from openai_endpoint import open_endpoint
from policy_server import Policy, PolicyServer, served_under
from step_verdict import Check, answer_checks, checks_text
from stepped_load import Phase, SteppedLoad

_HERE = Path(__file__).resolve().parent
_SPELLS = ("good", "useless", "good again")


@dataclass(frozen=True, slots=True)
class Seen:
    """All that came of a measurement."""

    watch: DepthWatch
    spells: tuple[Spell, ...]
    """Good, useless, good again."""
    checks: list[Check]


async def measure(options: argparse.Namespace, prompts: Sequence[Prompt], url: str, switch: Path) -> Seen:
    """Warm up, then turn drafts useless and good again under load."""
    async with AsyncExitStack() as stack:
        endpoint = await open_endpoint(stack, url, options.clients)
        client = await stack.enter_async_context(httpx.AsyncClient(base_url=url))
        body = {"max_tokens": options.max_tokens, "temperature": 0.0}
        load = SteppedLoad(endpoint, prompts, body, options.seed)
        plain = [await load.ask(0, index, {**body, "speculation": {"max_depth": 0}}) for index in range(len(prompts))]
        for index in range(len(prompts)):
            await load.ask(0, index, body)  # the corpus learns the answer
        watch = DepthWatch(client)
        async with watch.running():
            loaded = asyncio.create_task(load.run([Phase(options.clients, len(_SPELLS) * options.seconds)]))
            spells = [await _spell(options.seconds, switch, is_useless=name == "useless") for name in _SPELLS]
            await loaded
    texts = [None if answer is None else answer.text for answer in plain]
    different = sum(texts[one.prompt] != one.text for one in load.answers)
    bounds = Bounds(options.fall_rounds, options.return_rounds, options.clients, options.max_depth)
    checks = collapse_checks(watch, spells[1], spells[2], bounds)
    return Seen(watch, tuple(spells), checks + answer_checks(len(load.answers), different, load.failures))


async def _spell(seconds: float, switch: Path, is_useless: bool) -> Spell:
    began_s = time.perf_counter()
    if is_useless:
        switch.touch()
    await asyncio.sleep(seconds)
    switch.unlink(missing_ok=True)
    return Spell(began_s, time.perf_counter())


def with_switched_pool(content: Mapping[str, Any], switch: Path) -> dict[str, Any]:
    """The content of a cluster file with one pool, of the proposer that can be switched."""
    application = content["applications"][0]
    options = {"useless_while": str(switch)}
    pool = {"name": "switched", "method": "custom_class", "model": "switched_proposer.Switched", "options": options}
    arguments = {**application["args"], "draft_pools": [pool]}
    return {**content, "applications": [{**application, "args": arguments}]}


def result_of(options: argparse.Namespace, seen: Seen) -> dict[str, object]:
    """All that is kept of a measurement."""
    asked = {name: str(value) if isinstance(value, Path) else value for name, value in vars(options).items()}
    return {
        "machine": machine_facts(),
        "options": asked,
        "checks": [asdict(check) for check in seen.checks],
        "spells": [
            {"name": name, **asdict(spell), "reasons": seen.watch.counted(spell.began_s, spell.ended_s).reasons}
            for name, spell in zip(_SPELLS, seen.spells, strict=True)
        ],
        "samples": [asdict(sample) for sample in seen.watch.samples],
    }


def parse_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = control_parser(__doc__, ports=3)
    add = parser.add_argument
    add("--max-depth", type=int, default=8, help="num_speculative_tokens (default: %(default)s)")
    add("--clients", type=int, default=4, help="at once (default: %(default)s)")
    add("--seconds", type=float, default=40.0, help="good, useless and good again, each (default: %(default)s)")
    add("--fall-rounds", type=int, default=300, help="until the depth is 0 and stays there (default: %(default)s)")
    add("--return-rounds", type=int, default=400, help="until it is back, at most (default: %(default)s)")
    return parser.parse_args(arguments)


def main() -> int:
    """Returns the exit code."""
    options = parse_options()
    prompts = read_prompts(options.prompts)
    cluster = cluster_of(options)
    content = served_under(cluster, Policy("dynamic", "dynamic", options.max_depth), options.first_port)
    path = os.pathsep.join(filter(None, [str(_HERE), os.environ.get("PYTHONPATH")]))
    with tempfile.TemporaryDirectory(prefix="outrider-switch-") as folder:
        switch = Path(folder) / "useless"
        with PolicyServer(with_switched_pool(content, switch), {"PYTHONPATH": path}) as server:
            seen = asyncio.run(measure(options, prompts, server.url, switch))
    print(f"{timeline(seen.watch.samples, seen.spells[0].began_s)}\n\n{checks_text(seen.checks)}")
    keep(result_of(options, seen), options)
    return 0 if all(check.holds for check in seen.checks) else 1


if __name__ == "__main__":
    sys.exit(main())
