"""Prints what the n-gram and suffix proposers cost, as Markdown tables: time at several loads, and memory.

python benchmarks/proposers/measure_proposers.py [--steps 400] [--requests 200000] [--corpus-mib 256]

Proposers are called directly, without batcher and network. Times are those of whole batches.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

from proposer_memory import OUTPUT_IDS, Memory, watch
from proposer_timing import DEPTH, Load, Timing, measure
from proposer_workload import methods

_LOADS = (Load(1024, 1), Load(32 * 1024, 1), Load(1024, 256))
_FACTS = ("processor", "cores", "memory", "load average", "python", "numba", "numpy", "commit")


def main() -> None:
    parser = argparse.ArgumentParser(description="Measures the n-gram and suffix proposers.")
    parser.add_argument("--steps", type=int, default=400, help="ids that each session grows by (default: %(default)s)")
    parser.add_argument("--requests", type=int, default=200_000, help="finished requests (default: %(default)s)")
    parser.add_argument("--corpus-mib", type=int, default=256, help="budget of the corpus (default: %(default)s MiB)")
    arguments = parser.parse_args()
    kinds = methods(arguments.corpus_mib << 20)
    # Memory first: what measurements leave to the allocator would hide what is touched.
    print(f"{_machine()}\n\nOutputs of {OUTPUT_IDS} ids, corpus budget {arguments.corpus_mib} MiB.\n")
    print("| method | finished requests | resident, grown by | remembered | corpus, reserved |\n|---|---|---|---|---|")
    for method in kinds:
        for memory in watch(method, arguments.requests):
            print(_memory_line(memory), flush=True)
    print(f"\n{arguments.steps} steps a line; proposals of at most {DEPTH} ids; times in µs.\n")
    print(
        "| method | context | batch | propose p50 | p99 | append one p50 | p99 | ids proposed | session bytes an id |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for load in _LOADS:
        for method in kinds:
            print(_timing_line(measure(method, load, arguments.steps)), flush=True)


def _timing_line(timing: Timing) -> str:
    times = " | ".join(f"{time:.1f}" for time in (*timing.propose_us, *timing.append_us))
    load = f"{timing.load.context_ids} | {timing.load.batch}"
    return f"| {timing.method} | {load} | {times} | {timing.proposed_ids:.1f} | {timing.bytes_per_id:.0f} |"


def _memory_line(memory: Memory) -> str:
    sizes = f"{memory.grown_bytes / 2**20:.1f} MiB | {memory.remembered} | {memory.reserved_bytes / 2**20:.1f} MiB"
    return f"| {memory.method} | {memory.requests} | {sizes} |"


def _machine() -> str:
    command = [sys.executable, str(Path(__file__).parent.parent / "machine.py"), "--json"]
    facts: dict[str, str] = json.loads(subprocess.check_output(command))
    return ", ".join(f"{name} {facts[name]}" for name in _FACTS if name in facts)


if __name__ == "__main__":
    main()
