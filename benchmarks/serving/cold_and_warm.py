r"""Measures what pools get right when prompts are new, and when the same ones come again.

    outrider serve cluster.yaml                     # freshly started, so that its suffix corpus is empty
    python benchmarks/serving/cold_and_warm.py --url http://127.0.0.1:8000 --pool ngram --pool suffix

Every pool is asked for all prompts, one after the other (cold), and then for all of them once more (warm). Counts do
not depend on the machine's speed unless drafts come too late. Prints a Markdown table.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence
from pathlib import Path

import httpx

from closed_loop import read_prompts
from load_block import Arm, Prompt, run_block
from load_report import Row, rows_of
from openai_endpoint import OpenAIEndpoint, served_model

_HERE = Path(__file__).parent
_ANSWER_TIMEOUT_S = 600.0
_ROUNDS = ("cold", "warm")


async def measure(options: argparse.Namespace, prompts: Sequence[Prompt]) -> list[Row]:
    """One row for each pool and round."""
    common = {"max_tokens": options.max_tokens, "temperature": options.temperature}
    blocks = []
    async with httpx.AsyncClient(base_url=options.url, timeout=_ANSWER_TIMEOUT_S) as client:
        endpoint = OpenAIEndpoint(client, await served_model(client))
        for pool in options.pool:
            for name in _ROUNDS:
                arm = Arm(f"{pool}, {name}", endpoint, {**common, "speculation": {"pool": pool}})
                blocks.append(await run_block(arm, prompts, len(prompts), 1, options.seed, lambda: None))
    return rows_of(blocks, prompts)


def table(rows: Sequence[Row]) -> str:
    """Acceptance of each pool and round: over all prompts, and in tokens a round by kind of prompt."""
    kinds = sorted({kind for row in rows for kind in row.mean_length_by_kind})
    lines = [("pool", "accepted", "tokens a round", *kinds, "same texts"), ("---",) * (4 + len(kinds))]
    for row in rows:
        found = row.acceptance
        shown = ("-", "-") if found is None else (f"{found.rate:.0%}", f"{found.mean_length:.2f}")
        by_kind = (f"{row.mean_length_by_kind[kind]:.2f}" if kind in row.mean_length_by_kind else "-" for kind in kinds)
        lines.append((row.arm, *shown, *by_kind, f"{row.texts_as_first} of {row.requests}"))
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def parse_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--url", required=True, help="base URL of the server, without /v1")
    add("--pool", action="append", required=True, help="name of a pool; repeatable")
    add("--max-tokens", type=int, default=96, help="tokens of an answer at most (default: %(default)s)")
    add("--temperature", type=float, default=0.0, help="(default: %(default)s)")
    add("--seed", type=int, default=1000, help="request i uses seed + i (default: %(default)s)")
    add("--prompts", type=Path, default=_HERE / "prompts.json", help="JSON list of {kind, text} (default: bundled)")
    return parser.parse_args(arguments)


def main() -> None:
    options = parse_options()
    print(table(asyncio.run(measure(options, read_prompts(options.prompts)))))


if __name__ == "__main__":
    main()
