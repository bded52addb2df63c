"""Says where the time of one engine step goes, by rows and depth.

    python benchmarks/serving/profile_step.py --rows 1 4 16 --depth 0 8

The engine runs alone in this process and is stepped by hand. Draft workers are processes of their own. Prints a
Markdown table of milliseconds a step; `--operators` adds the operators that take the most time, as torch's profiler
sees them.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import get_args

import torch
from rich.console import Console

from closed_loop import read_prompts
from engine_under_test import EngineUnderTest, LoadedModel, engine_under_test
from outrider_runtime.models.loading import ModelDtype
from outrider_runtime.models.progress import choose_progress
from outrider_runtime.models.source import resolve_source
from outrider_target.settings import TargetSettings
from stopwatch import Stopwatch
from watched_parts import PARTS, REST, watch_engine

_HERE = Path(__file__).parent
_WARM_UP_STEPS = 8
_OPERATOR_STEPS = 10
_MAX_TOKENS = 1024


@dataclass(frozen=True, slots=True)
class StepProfile:
    """Means over the measured steps of one setting."""

    rows: int
    depth: int
    steps: int
    parts_ms: Mapping[str, float]
    tokens: float
    """Committed tokens a step."""
    network_ms: float
    """CPU time of the network's thread a step; it runs beside the engine's."""
    workers_ms: float
    """CPU time of all draft workers a step."""

    @property
    def total_ms(self) -> float:
        """A whole step."""
        return sum(self.parts_ms.values())


def profile(subject: EngineUnderTest, stopwatch: Stopwatch, rows: int, steps: int) -> StepProfile:
    """Measure up to `steps` steps in which all rows decode."""
    _let_all_decode(subject)
    before_s, tokens = dict(stopwatch.totals_s), subject.committed_tokens
    network_s, workers_s = _network_cpu_s(), _processes_cpu_s(subject.worker_pids)
    taken = 0
    while taken < steps and subject.engine.num_running == rows:
        with stopwatch.running(REST):
            subject.engine.step()
        taken += 1
    return StepProfile(
        rows=rows,
        depth=subject.engine.control.max_depth,
        steps=taken,
        parts_ms={part: 1e3 * (stopwatch.totals_s[part] - before_s.get(part, 0.0)) / taken for part in PARTS},
        tokens=(subject.committed_tokens - tokens) / taken,
        network_ms=1e3 * (_network_cpu_s() - network_s) / taken,
        workers_ms=1e3 * (_processes_cpu_s(subject.worker_pids) - workers_s) / taken,
    )


def operator_table(subject: EngineUnderTest) -> str:
    """The operators that take the most time in a few more steps. Their recording slows everything around them."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as recorded:
        for _ in range(_OPERATOR_STEPS):
            subject.engine.step()
    table: str = recorded.key_averages().table(sort_by="self_cpu_time_total", row_limit=15)
    return table


def markdown_table(profiles: Sequence[StepProfile]) -> str:
    """Milliseconds a step, and the share of the step, one column for each setting."""
    heads = [f"rows {profile.rows}, depth {profile.depth}" for profile in profiles]
    lines = [("part, ms a step", *heads), ("---", *("---" for _ in heads))]
    lines += [(part, *(_share(profile, part) for profile in profiles)) for part in PARTS]
    lines += [
        ("**whole step**", *(f"**{profile.total_ms:.2f}**" for profile in profiles)),
        ("tokens a step", *(f"{profile.tokens:.2f}" for profile in profiles)),
        ("tokens a second", *(f"{1e3 * profile.tokens / profile.total_ms:.1f}" for profile in profiles)),
        ("beside it: CPU of the network thread", *(f"{profile.network_ms:.2f}" for profile in profiles)),
        ("beside it: CPU of the draft workers", *(f"{profile.workers_ms:.2f}" for profile in profiles)),
        ("steps measured", *(str(profile.steps) for profile in profiles)),
    ]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _share(profile: StepProfile, part: str) -> str:
    return f"{profile.parts_ms[part]:.2f} ({profile.parts_ms[part] / profile.total_ms:.0%})"


def _let_all_decode(subject: EngineUnderTest) -> None:
    while not all(sink.tokens for sink in subject.sinks):
        subject.engine.step()
    for _ in range(_WARM_UP_STEPS):
        subject.engine.step()


def _network_cpu_s() -> float:
    """CPU time of the draft links' thread so far; 0 without one."""
    idents = [thread.ident for thread in threading.enumerate() if thread.name == "outrider-draft-links"]
    return sum(time.clock_gettime(time.pthread_getcpuclockid(ident)) for ident in idents if ident is not None)


def _processes_cpu_s(pids: Sequence[int]) -> float:
    """CPU time of processes so far, user and system."""
    ticks = os.sysconf("SC_CLK_TCK")
    fields = [Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split() for pid in pids]
    return sum(int(values[11]) + int(values[12]) for values in fields) / ticks


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--source", default="demo", help="model: demo, a folder or a hub id (default: %(default)s)")
    add("--dtype", choices=get_args(ModelDtype), default="bfloat16", help="(default: %(default)s)")
    add("--rows", type=int, nargs="+", default=[1, 4, 16], metavar="N", help="requests at once (default: 1 4 16)")
    add("--depth", type=int, nargs="+", default=[0, 8], metavar="K", help="proposed tokens a round (default: 0 8)")
    add("--steps", type=int, default=50, help="steps measured for each setting (default: %(default)s)")
    add("--threads", type=int, default=2, help="threads of the forward pass (default: %(default)s)")
    add("--workers", type=int, default=1, help="draft workers (default: %(default)s)")
    add("--operators", action="store_true", help="also print torch's table of operators for the last setting")
    return parser.parse_args()


def main() -> None:
    options, console = _parse_options(), Console(stderr=True)
    settings = TargetSettings(num_threads=options.threads)
    folder = resolve_source(options.source, progress=choose_progress(sys.stderr))
    stopwatch = Stopwatch()
    with console.status("loading the model"):
        model = LoadedModel.load(folder, options.dtype, settings)
    watch_engine(stopwatch, model.forward)
    console.print(f"served by {model.served_by}")
    prompts = read_prompts(_HERE / "prompts.json")
    profiles, operators = [], ""
    for rows, depth in product(options.rows, options.depth):
        chosen = [prompts[index % len(prompts)] for index in range(rows)]
        console.print(f"rows {rows}, depth {depth} …")
        with engine_under_test(model, settings, depth, options.workers) as subject:
            subject.submit(model, chosen, _MAX_TOKENS)
            profiles.append(profile(subject, stopwatch, rows, options.steps))
            operators = operator_table(subject) if options.operators else ""
    print(markdown_table(profiles))
    print(operators)


if __name__ == "__main__":
    main()
