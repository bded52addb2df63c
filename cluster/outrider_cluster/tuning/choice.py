"""From measured cells to depths: the best one at each load, vLLM's table, our config, and a profile."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import yaml

from outrider_cluster.tuning.outcome import CellOutcome
from outrider_cluster.tuning.plan import ALL_POOLS
from outrider_target.control.cost_model import StepCostModel, StepLoad, StepSample

_WORTH_IT = 0.01
"""A deeper draft must win by this share: less is noise, and shallower drafts leave room."""


class Choice(NamedTuple):
    """The best cell of a load, and how it compares with depth 0."""

    load: int
    best: CellOutcome
    against_plain: float
    """Throughput over that of depth 0."""


def choose(outcomes: Iterable[CellOutcome]) -> list[Choice]:
    """The best depth and pool at each load that has a cell of depth 0, loads rising."""
    by_load: dict[int, list[CellOutcome]] = {}
    for outcome in outcomes:
        by_load.setdefault(outcome.load, []).append(outcome)
    return [_best(load, cells) for load, cells in sorted(by_load.items()) if any(cell.depth == 0 for cell in cells)]


def _best(load: int, cells: Sequence[CellOutcome]) -> Choice:
    ordered = sorted(cells, key=lambda cell: cell.depth)
    best = plain = ordered[0]
    for cell in ordered[1:]:
        if cell.tokens_per_s > best.tokens_per_s * (1 + _WORTH_IT):
            best = cell
    return Choice(load, best, best.tokens_per_s / plain.tokens_per_s if plain.tokens_per_s else 0.0)


def vllm_table(choices: Sequence[Choice]) -> list[list[int]]:
    """`num_speculative_tokens_per_batch_size`: each depth from the load before on, equal neighbours joined."""
    table: list[list[int]] = []
    for choice in choices:
        start = table[-1][1] + 1 if table else 1
        if table and table[-1][2] == choice.best.depth:
            table[-1][1] = choice.load
        else:
            table.append([start, choice.load, choice.best.depth])
    return table


def config_snippet(choices: Sequence[Choice]) -> str:
    """The part of a cluster file that sets these depths, after a comment that names the pools they hold for."""
    deepest = max((choice.best.depth for choice in choices), default=0)
    if deepest == 0:
        return "# No depth was faster than depth 0 at any load: leave draft_pools out.\n"
    speculative = {"num_speculative_tokens": deepest, "num_speculative_tokens_per_batch_size": vllm_table(choices)}
    text: str = yaml.safe_dump({"speculative_config": speculative}, sort_keys=False, default_flow_style=None)
    return _pools_comment(choices) + text


def _pools_comment(choices: Sequence[Choice]) -> str:
    """Of which pools the depths are; a table cannot say it."""
    loads: dict[str, list[str]] = {}
    for choice in choices:
        if choice.best.depth:
            loads.setdefault(choice.best.pool, []).append(str(choice.load))
    if list(loads) == [ALL_POOLS]:
        return "# Measured with all draft pools of the cluster.\n"
    if len(loads) == 1:
        (pool,) = loads
        return f"# Measured with the draft pool {pool} alone: keep it in draft_pools and leave the others out.\n"
    best = "; ".join(f"{pool} at load {', '.join(those)}" for pool, those in loads.items())
    return (
        f"# No draft pool is the best at every load: {best}.\n"
        "# A table knows loads and no pools: tune again with --pools of those that you will deploy.\n"
    )


def fit_cost(outcomes: Iterable[CellOutcome]) -> StepCostModel | None:
    """Step times as the cells imply them: a round of all rows yields their tokens. None with too few cells.

    Waiting for drafts is part of the rounds that had drafts. Every row is taken to decode all the time.
    """
    samples = []
    for cell in outcomes:
        if cell.tokens_per_s > 0:
            tokens = cell.load * (1 + (sum(cell.proposed_at) and cell.depth))
            round_s = cell.load * (1 + cell.mean_accepted) / cell.tokens_per_s
            samples.append(StepSample(StepLoad(cell.load, tokens), round_s))
    return StepCostModel.fit(samples) if len({sample.load.tokens for sample in samples}) > 1 else None
