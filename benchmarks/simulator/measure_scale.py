r"""Measures how the simulator's time and memory grow with targets, draft workers and requests.

    python benchmarks/simulator/measure_scale.py --targets 10 100 1000 --depth static dynamic

Each size runs in a process of its own, so that memory is that of one simulation. Prints a Markdown table.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

from outrider_cluster.simulator.scenario import Scenario
from outrider_cluster.simulator.world import World

_COLUMNS = (
    "targets",
    "draft workers",
    "depth",
    "requests",
    "steps",
    "events",
    "wall s",
    "CPU s",
    "CPU µs a step",
    "MiB",
)


def scenario(targets: int, workers: int, depth: str, duration_s: float) -> Scenario:
    """Chat traffic that keeps about eight requests at each target."""
    traffic = {
        "arrivals": {"kind": "closed_loop", "clients": 8 * targets},
        "kinds": [
            {
                "prompt_tokens": {"kind": "lognormal", "median": 200},
                "output_tokens": {"kind": "lognormal", "median": 150, "high": 1024},
            }
        ],
    }
    pool = {
        "name": "drafter",
        "workers": workers * targets,
        "acceptance": [0.8, 0.75, 0.7],
        "time": {"base_ms": 1.0, "token_ms": 0.5, "row_ms": 0.1},
    }
    values = {
        "duration_s": duration_s,
        "traffic": traffic,
        "targets": {"count": targets, "step": {"base_ms": 20.0, "token_ms": 0.1}},
        "draft_pools": [pool],
        "network": {"round_trip_ms": 0.5, "jitter": 0.3},
        "control": {"depth": depth, "num_speculative_tokens": 6},
    }
    return Scenario.model_validate(values)


def measure(targets: int, workers: int, depth: str, duration_s: float) -> list[str]:
    """One row of the table."""
    began_s, began_cpu_s = time.monotonic(), time.process_time()
    world = World(scenario(targets, workers, depth, duration_s), Path())
    world.run()
    wall_s, cpu_s = time.monotonic() - began_s, time.process_time() - began_cpu_s
    steps = world.measurements.steps
    mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    numbers = (targets, workers * targets, depth, world.requests, steps, world.events)
    return [*map(str, numbers), f"{wall_s:.1f}", f"{cpu_s:.1f}", f"{1e6 * cpu_s / steps:.0f}", f"{mib:.0f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--targets", type=int, nargs="+", default=[10, 100, 1000])
    add("--workers", type=int, default=10, help="draft workers for each target (default: %(default)s)")
    add("--depth", nargs="+", default=["static", "dynamic"], choices=["static", "dynamic"])
    add("--duration-s", type=float, default=20.0, help="simulated time (default: %(default)s)")
    add("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one is not None:
        print(json.dumps(measure(options.targets[0], options.workers, options.one, options.duration_s)))
        return
    print("| " + " | ".join(_COLUMNS) + " |\n|" + " --- |" * len(_COLUMNS))
    for depth in options.depth:
        for targets in options.targets:
            numbers = ["--targets", targets, "--workers", options.workers, "--duration-s", options.duration_s]
            command = [sys.executable, __file__, "--one", depth, *map(str, numbers)]
            row = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
            print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
