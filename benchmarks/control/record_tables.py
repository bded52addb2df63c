r"""Records what the replay tests of the depth policy read: step costs, answers and acceptance, from the real engine.

    python benchmarks/control/record_tables.py answers acceptance
    python benchmarks/control/record_tables.py costs

`answers` asks the bundled prompts greedily; `acceptance` does so and plays the proposers over the answers. Both may run
on a busy machine. `costs` times steps of 1 to 256 rows on a quiet one. All write into the folder of the tests.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import get_args

from rich.console import Console

import neighbours  # noqa: F401
from closed_loop import read_prompts
from drafted_answers import Answer, Outcomes, drafted
from engine_under_test import LoadedModel
from outrider_draft.config import LookupBounds
from outrider_draft.ngram_proposer import NgramProposer
from outrider_draft.proposer import Proposer
from outrider_draft.suffix_corpus import CorpusSize
from outrider_draft.suffix_proposer import Remembering, SuffixProposer
from outrider_draft.suffix_rules import SuffixRules
from outrider_runtime.clock import SystemClock
from outrider_runtime.models.loading import ModelDtype
from outrider_runtime.models.progress import choose_progress
from outrider_runtime.models.source import resolve_source
from outrider_target.control.cost_profile import CostProfile, ProfileKey
from outrider_target.cost_profiler import StepBounds, hardware_name, library_versions, measure_steps
from outrider_target.settings import TargetSettings
from outrider_target.weight_version import weight_version
from recorded_answers import record_answers

_ROOT = Path(__file__).resolve().parents[2]
_HASH_SEED = 1
_NUMBERS = re.compile(r"\[[\d,\s]+\]")


@dataclass(frozen=True, slots=True)
class Drafting:
    """A way of drafting that is recorded."""

    make: Callable[[], Proposer]
    repeats: bool = False
    """Whether answers were given before."""


def draftings() -> Mapping[str, Drafting]:
    """The proposers of the example cluster file, by name."""

    def make_suffix() -> Proposer:
        return SuffixProposer(SuffixRules(24, 1.0, 0.1), Remembering(CorpusSize(1 << 16, 64)), _HASH_SEED)

    return {
        "ngram": Drafting(lambda: NgramProposer(LookupBounds(2, 5), _HASH_SEED)),
        "suffix": Drafting(make_suffix),
        "suffix, answers given before": Drafting(make_suffix, repeats=True),
    }


def acceptance_table(answers: Sequence[Answer], depth: int) -> dict[str, dict[str, list[list[int]]]]:
    """By way of drafting and kind of prompt: `[proposed, accepted, rounds]`, in order."""
    return {
        name: _listed(drafted(answers, drafting.make, depth, drafting.repeats))
        for name, drafting in draftings().items()
    }


def _listed(outcomes: Outcomes) -> dict[str, list[list[int]]]:
    return {kind: [[*outcome, count] for outcome, count in sorted(counts.items())] for kind, counts in outcomes.items()}


def record_given_answers(options: argparse.Namespace, model: LoadedModel, settings: TargetSettings) -> None:
    """Ask, write."""
    answers = record_answers(model, settings, read_prompts(options.prompts), options.max_tokens)
    content = {
        "model": options.source,
        "weights": weight_version(model.folder, options.dtype),
        "max_tokens": options.max_tokens,
        "answers": [asdict(answer) for answer in answers],
    }
    write_lines(options.folder / "answers.json", content)


def record_acceptance(options: argparse.Namespace, model: LoadedModel, settings: TargetSettings) -> None:
    """Ask, play, write."""
    answers = record_answers(model, settings, read_prompts(options.prompts), options.max_tokens)
    content = {
        "model": options.source,
        "weights": weight_version(model.folder, options.dtype),
        "max_tokens": options.max_tokens,
        "answers": {kind: sum(one.kind == kind for one in answers) for kind in dict.fromkeys(a.kind for a in answers)},
        "tokens": sum(len(answer.answer_ids) for answer in answers),
        "depth": options.depth,
        "outcomes": acceptance_table(answers, options.depth),
    }
    write_lines(options.folder / "acceptance.json", content)


def record_costs(options: argparse.Namespace, model: LoadedModel, settings: TargetSettings) -> None:
    """Time, write."""
    bounds = StepBounds(options.rows, options.depth, settings.max_model_len, options.rows * (1 + options.depth))
    key = ProfileKey(
        model=weight_version(model.folder, options.dtype),
        dtype=options.dtype,
        tensor_parallel_size=1,
        threads=settings.num_threads,
        hardware=hardware_name("cpu"),
        versions=library_versions(model.served_by),
    )
    samples = measure_steps(model.forward, bounds, SystemClock(), options.budget_s)
    CostProfile(key, samples).save(options.folder / "step_costs.json")


def write_lines(path: Path, content: Mapping[str, object]) -> None:
    """JSON with a line for each list of numbers, so that a change can be read."""
    text = _NUMBERS.sub(lambda found: " ".join(found.group().split()), json.dumps(content, indent=1))
    text = text.replace("[ ", "[").replace(" ]", "]")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n", encoding="utf-8")


def parse_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("tables", nargs="+", choices=("answers", "acceptance", "costs"), help="what to record")
    add("--folder", type=Path, default=_ROOT / "tests/target/control/recorded", help="(default: that of the tests)")
    add("--source", default="demo", help="model: demo, a folder or a hub id (default: %(default)s)")
    add("--dtype", choices=get_args(ModelDtype), default="bfloat16", help="(default: %(default)s)")
    add("--threads", type=int, default=2, help="threads of the forward pass (default: %(default)s)")
    add("--depth", type=int, default=8, help="deepest proposal (default: %(default)s)")
    add("--rows", type=int, default=256, help="costs: rows of a step at most (default: %(default)s)")
    add("--budget-s", type=float, default=180.0, help="costs: time for measuring (default: %(default)s)")
    add("--max-tokens", type=int, default=192, help="acceptance: tokens of an answer at most (default: %(default)s)")
    add("--prompts", type=Path, default=_ROOT / "benchmarks/serving/prompts.json", help="JSON list of {kind, text}")
    return parser.parse_args(arguments)


def main() -> None:
    options = parse_options()
    settings = TargetSettings(num_threads=options.threads)
    with Console(stderr=True).status("loading the model"):
        model = LoadedModel.load(
            resolve_source(options.source, progress=choose_progress(sys.stderr)), options.dtype, settings
        )
    record = {"answers": record_given_answers, "acceptance": record_acceptance, "costs": record_costs}
    for table in options.tables:
        record[table](options, model, settings)


if __name__ == "__main__":
    main()
