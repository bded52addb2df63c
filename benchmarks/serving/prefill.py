r"""Measures the time to the first token for prompts that no server has seen before.

    python benchmarks/serving/prefill.py --arm ours@http://127.0.0.1:8000 --arm other@http://127.0.0.1:8500 \
        --lengths 128 512 1024

Prompts are random token ids, new ones for every request, so that no prefix cache helps; each asks for one token. One
request at a time; at each length the arms take turns, A-B-B-A. Servers named by `--pause` stand still while another one
is measured. Prints a Markdown table.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from random import Random
from statistics import median

import httpx

from openai_endpoint import served_model
from paused_servers import PausedServers, add_pause_option

_ANSWER_TIMEOUT_S = 600.0
_WARM_UP_REQUESTS = 2


@dataclass(frozen=True, slots=True)
class PrefillArm:
    """A server that is asked."""

    name: str
    url: str
    client: httpx.AsyncClient
    model: str

    async def first_token_s(self, prompt: list[int]) -> float:
        """Seconds from sending a prompt of token ids to the answer of one token."""
        body = {"model": self.model, "prompt": prompt, "max_tokens": 1, "temperature": 0.0, "ignore_eos": True}
        start_s = time.perf_counter()
        response = await self.client.post("/v1/completions", json=body)
        response.raise_for_status()
        return time.perf_counter() - start_s


async def measure(options: argparse.Namespace) -> str:
    """The table of all lengths and arms."""
    random, servers = Random(options.seed), PausedServers(dict(options.pause))

    async def timed(arm: PrefillArm, length: int) -> float:
        await servers.only(arm.url)
        return await arm.first_token_s(_prompt(random, length, options.vocab))

    async with AsyncExitStack() as stack:
        stack.callback(servers.resume)
        arms = [await _arm(stack, text) for text in options.arm]
        lines = ["| tokens | arm | time to first token, ms | prompt tokens/s | against first |", "|" + " --- |" * 5]
        for length in options.lengths:
            times_s: dict[str, list[float]] = {arm.name: [] for arm in arms}
            for arm in arms * _WARM_UP_REQUESTS:
                await timed(arm, length)
            for arm in [*arms, *reversed(arms)] * options.repeats:
                times_s[arm.name].append(await timed(arm, length))
            first = times_s[arms[0].name]
            lines += [table_line(length, name, taken_s, first) for name, taken_s in times_s.items()]
    return "\n".join(lines)


def table_line(length: int, name: str, taken_s: Sequence[float], first_s: Sequence[float]) -> str:
    """Median and extremes of one arm; its median over that of the first arm."""
    middle_s = median(taken_s)
    times = f"{1e3 * middle_s:.0f} ({1e3 * min(taken_s):.0f}-{1e3 * max(taken_s):.0f})"
    return f"| {length} | {name} | {times} | {length / middle_s:.0f} | {middle_s / median(first_s):.2f} |"


def _prompt(random: Random, length: int, vocab_size: int) -> list[int]:
    """The first hundred ids are left out: special tokens are among them."""
    return [random.randrange(100, vocab_size) for _ in range(length)]


async def _arm(stack: AsyncExitStack, text: str) -> PrefillArm:
    name, _, url = text.partition("@")
    client = await stack.enter_async_context(httpx.AsyncClient(base_url=url, timeout=_ANSWER_TIMEOUT_S))
    return PrefillArm(name, url, client, await served_model(client))


def parse_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--arm", action="append", required=True, metavar="NAME@URL", help="a server; repeatable")
    add("--lengths", type=int, nargs="+", default=[128, 512, 1024], metavar="N", help="(default: 128 512 1024)")
    add("--repeats", type=int, default=5, help="how often the arms run A-B-B-A (default: %(default)s)")
    add("--vocab", type=int, default=49152, help="size of the model's vocabulary (default: %(default)s)")
    add("--seed", type=int, default=1, help="of the prompts (default: %(default)s)")
    add_pause_option(parser)
    return parser.parse_args(arguments)


def main() -> None:
    print(asyncio.run(measure(parse_options())))


if __name__ == "__main__":
    main()
