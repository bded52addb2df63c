r"""Says how close the simulator comes to a live cluster: plays the loads of `compare_depths.py` from recorded figures.

    python benchmarks/control/compare_depths.py --pool ngram --out depths.json
    python benchmarks/simulator/against_live.py depths.json --profile ~/.cache/outrider/models/profiles/PROFILE.json

Step times are those that a server measured at its start, and what is accepted was recorded for the replay test; of the
live measurement only numbers of clients and lengths of answers are used. Prints a Markdown table.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from outrider_cluster.simulator.scenario import Scenario
from outrider_cluster.simulator.world import World

_RECORDED = Path(__file__).resolve().parents[2] / "tests/target/control/recorded/acceptance.json"
_COLUMNS = ("clients", "arm", "live tokens/s", "simulated", "off by")
_STATIC = "static "

Outcomes = Sequence[tuple[int, int, int]]
"""Proposed ids, accepted ids, rounds."""


def kind_of(name: str, pool: str, outcomes: Outcomes, mean_tokens: float, prompt_tokens: int) -> dict[str, Any]:
    """One kind of prompt, as a scenario has it. The prefix cache holds all of its prompt, as after a warm-up."""
    depth = max(proposed for proposed, _, _ in outcomes)
    reached = [_rounds(one for one in outcomes if one[1] >= length) for length in range(depth + 1)]
    proposed = _rounds(one for one in outcomes if one[0] > 0)
    tried = [proposed, *reached[1:-1]]
    acceptance = [right / of if of else 0.0 for right, of in zip(reached[1:], tried, strict=True)]
    return {
        "name": name,
        "prompt_tokens": prompt_tokens,
        "cached_share": 1.0,
        "output_tokens": max(1, round(mean_tokens)),
        "coverage": {pool: proposed / _rounds(outcomes)},
        "acceptance": {pool: acceptance},
    }


def control_of(arm: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """What decides the depth in an arm of the live measurement."""
    deepest = max(options["static"])
    if arm == "dynamic":
        return {"depth": "dynamic", "num_speculative_tokens": deepest}
    if arm == "table":
        table = options["table"]
        most = max(depth for _, _, depth in table)
        return {"depth": "table", "num_speculative_tokens": most, "num_speculative_tokens_per_batch_size": table}
    depth = int(arm.removeprefix(_STATIC)) if arm.startswith(_STATIC) else 0
    return {"depth": "static", "num_speculative_tokens": depth}


def simulated_tokens_per_s(row: Mapping[str, Any], live: Mapping[str, Any], options: argparse.Namespace) -> float:
    """Throughput of the simulated cluster under the load of one row."""
    recorded = json.loads(options.acceptance.read_text(encoding="utf-8"))["outcomes"][options.pool]
    lengths = row["mean_tokens_by_kind"]
    kinds = [
        kind_of(name, options.pool, recorded[name], tokens, options.prompt_tokens) for name, tokens in lengths.items()
    ]
    values = {
        "duration_s": options.duration_s,
        "warm_up_s": options.duration_s / 10,
        "traffic": {"arrivals": {"kind": "closed_loop", "clients": row["concurrency"]}, "kinds": kinds},
        "targets": {"max_num_seqs": options.max_num_seqs, "profile": str(options.profile.resolve())},
        "draft_pools": [{"name": options.pool, "workers": 2}],
        "network": {"round_trip_ms": options.round_trip_ms},
        "control": control_of(row["arm"], live["options"]),
    }
    world = World(Scenario.model_validate(values), Path())
    world.run()
    return world.measurements.tokens / world.measurements.counted_s


def _rounds(outcomes: Iterable[tuple[int, int, int]]) -> int:
    return sum(rounds for _, _, rounds in outcomes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("live", type=Path, help="what compare_depths.py wrote")
    add("--profile", type=Path, required=True, help="step times of that server")
    add("--acceptance", type=Path, default=_RECORDED, help="recorded proposals (default: those of the replay test)")
    add("--pool", default="ngram", help="way of drafting in the recording (default: %(default)s)")
    add("--prompt-tokens", type=int, default=96, help="of a prompt, on average (default: %(default)s)")
    add("--round-trip-ms", type=float, default=2.0, help="from a commitment to its drafts (default: %(default)s)")
    add("--max-num-seqs", type=int, default=32, help="of the target (default: %(default)s)")
    add("--duration-s", type=float, default=300.0, help="simulated time (default: %(default)s)")
    options = parser.parse_args()
    live = json.loads(options.live.read_text(encoding="utf-8"))
    print("| " + " | ".join(_COLUMNS) + " |\n|" + " --- |" * len(_COLUMNS))
    for row in live["rows"]:
        seen, simulated = row["tokens_per_s"]["median"], simulated_tokens_per_s(row, live, options)
        cells = (row["concurrency"], row["arm"], f"{seen:.1f}", f"{simulated:.1f}", f"{simulated / seen - 1:+.1%}")
        print("| " + " | ".join(map(str, cells)) + " |", flush=True)


if __name__ == "__main__":
    main()
