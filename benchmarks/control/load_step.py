r"""Shows how the dynamic depth follows the load: clients come and go while requests run.

    python benchmarks/control/load_step.py --clients 1 32 1 --seconds 30 --out step.json

Serves a copy of a cluster file with a dynamic depth, asks all prompts without speculation, then again under the
changing load, and looks at depth and reason ten times a second. Checks that the depth follows every change within five
rounds and the dwell time, changes at most once in the dwell time, is shallower under more load, that all answers are
those of depth 0, and that no request fails. Exits with 1 if one of it is not so.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

import httpx

import neighbours  # noqa: F401
from closed_loop import machine_facts, read_prompts
from control_options import cluster_of, control_parser, keep
from depth_timeline import timeline
from depth_watch import DepthWatch
from load_block import Prompt
from openai_endpoint import open_endpoint
from outrider_target.control.settings import DepthSettings
from policy_server import Policy, PolicyServer, served_under
from step_verdict import Check, SeenPhase, answer_checks, checks_text, step_checks
from stepped_load import Asked, PhaseSpan, SteppedLoad, phases_of, when_changed


@dataclass(frozen=True, slots=True)
class Seen:
    """All that came of a measurement."""

    phases: list[SeenPhase]
    answers: list[Asked]
    different: int
    """Answers that are not those of depth 0."""
    failures: list[str]
    watch: DepthWatch


async def measure(options: argparse.Namespace, prompts: Sequence[Prompt], url: str) -> Seen:
    """Ask all prompts at depth 0, warm up, then run the phases."""
    async with AsyncExitStack() as stack:
        endpoint = await open_endpoint(stack, url, max(options.clients))
        client = await stack.enter_async_context(httpx.AsyncClient(base_url=url))
        pool = {"pool": options.pool} if options.pool else {}
        body = {"max_tokens": options.max_tokens, "temperature": 0.0}
        load = SteppedLoad(endpoint, prompts, {**body, "speculation": pool}, options.seed)
        plain = [await load.ask(0, index, {**body, "speculation": {"max_depth": 0}}) for index in range(len(prompts))]
        await load.run(phases_of(options.clients[:1], options.seconds / 2))
        load.answers.clear()
        watch = DepthWatch(client)
        async with watch.running():
            times = await load.run(phases_of(options.clients, options.seconds))
    texts = [None if answer is None else answer.text for answer in plain]
    return Seen(
        seen_phases(times, load.answers, watch),
        load.answers,
        sum(texts[one.prompt] != one.text for one in load.answers),
        load.failures,
        watch,
    )


def seen_phases(times: Sequence[PhaseSpan], answers: Sequence[Asked], watch: DepthWatch) -> list[SeenPhase]:
    """What was seen of each phase."""
    found, before = [], times[0].phase.clients
    for span in times:
        changed_s = when_changed(before, span.phase.clients, span.began_s, answers)
        counted = watch.counted(span.began_s, span.ended_s)
        samples = watch.between(changed_s, span.ended_s)
        phase = SeenPhase(span, changed_s, samples, counted.seconds, counted.rounds, counted.changes)
        found.append(phase)
        before = span.phase.clients
    return found


def result_of(options: argparse.Namespace, seen: Seen, checks: Sequence[Check]) -> dict[str, object]:
    """All that is kept of a measurement."""
    asked = {name: str(value) if isinstance(value, Path) else value for name, value in vars(options).items()}
    return {
        "machine": machine_facts(),
        "options": asked,
        "checks": [asdict(check) for check in checks],
        "phases": [asdict(phase.span) for phase in seen.phases],
        "samples": [asdict(sample) for sample in seen.watch.samples],
    }


def parse_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = control_parser(__doc__, ports=3)
    add = parser.add_argument
    add("--max-depth", type=int, default=8, help="num_speculative_tokens (default: %(default)s)")
    add("--clients", type=int, nargs="+", default=[1, 32, 1], metavar="N", help="in each phase (default: 1 32 1)")
    add("--seconds", type=float, default=30.0, help="of a phase (default: %(default)s)")
    add("--pool", default="ngram", help="draft pool that requests ask for; empty: all (default: %(default)s)")
    add("--kinds", nargs="+", help="kinds of prompts to ask (default: all)")
    return parser.parse_args(arguments)


def main() -> int:
    """Returns the exit code."""
    options = parse_options()
    prompts = [one for one in read_prompts(options.prompts) if options.kinds is None or one.kind in options.kinds]
    cluster = cluster_of(options)
    policy = Policy("dynamic", "dynamic", options.max_depth)
    with PolicyServer(served_under(cluster, policy, options.first_port)) as server:
        seen = asyncio.run(measure(options, prompts, server.url))
    controller = cluster["applications"][0]["args"].get("controller") or {}
    dwell_s = DepthSettings(**(controller.get("dynamic") or {})).dwell_ms / 1e3
    checks = step_checks(seen.phases, dwell_s) + answer_checks(len(seen.answers), seen.different, seen.failures)
    print(f"{timeline(seen.watch.samples, seen.phases[0].span.began_s)}\n\n{checks_text(checks)}")
    keep(result_of(options, seen, checks), options)
    return 0 if all(check.holds for check in checks) else 1


if __name__ == "__main__":
    sys.exit(main())
