"""From cells to tables: the best depth of each load, in vLLM's shape."""

from __future__ import annotations

import pytest
import yaml

from outrider_cluster.tuning.choice import choose, config_snippet, fit_cost, vllm_table
from outrider_cluster.tuning.outcome import CellOutcome
from outrider_target.control.cost_model import StepLoad
from outrider_target.control.table_policy import parse_table


def cell(load: int, depth: int, tokens_per_s: float, **more: object) -> CellOutcome:
    values = {"load": load, "depth": depth, "pool": "all", "tokens_per_s": tokens_per_s, **more}
    return CellOutcome.model_validate(values)


GRID = [
    *(cell(1, depth, rate) for depth, rate in ((0, 40.0), (2, 60.0), (4, 80.0))),
    *(cell(4, depth, rate) for depth, rate in ((0, 150.0), (2, 200.0), (4, 220.0))),
    *(cell(16, depth, rate) for depth, rate in ((0, 500.0), (2, 540.0), (4, 430.0))),
    *(cell(64, depth, rate) for depth, rate in ((0, 900.0), (2, 700.0), (4, 500.0))),
]


def test_each_load_gets_its_fastest_depth() -> None:
    assert [(choice.load, choice.best.depth) for choice in choose(GRID)] == [(1, 4), (4, 4), (16, 2), (64, 0)]


def test_a_deeper_draft_must_win_by_more_than_noise() -> None:
    (choice,) = choose([cell(1, 0, 100.0), cell(1, 4, 100.5)])
    assert choice.best.depth == 0


def test_a_load_without_depth_zero_is_left_out() -> None:
    assert choose([cell(1, 4, 100.0)]) == []


def test_the_table_joins_equal_neighbours_and_is_one_that_vllm_takes() -> None:
    table = vllm_table(choose(GRID))
    assert table == [[1, 4, 4], [5, 16, 2], [17, 64, 0]]
    assert [list(entry) for entry in parse_table(table)] == table


def test_the_snippet_holds_the_table_and_the_deepest_depth() -> None:
    assert yaml.safe_load(config_snippet(choose(GRID))) == {
        "speculative_config": {
            "num_speculative_tokens": 4,
            "num_speculative_tokens_per_batch_size": [[1, 4, 4], [5, 16, 2], [17, 64, 0]],
        }
    }


@pytest.mark.parametrize(
    ("pools", "words"),
    [
        (("all", "all"), "with all draft pools of the cluster"),
        (("suffix", "suffix"), "the draft pool suffix alone: keep it in draft_pools and leave the others out"),
        (("ngram", "suffix"), "No draft pool is the best at every load: ngram at load 1; suffix at load 4."),
    ],
)
def test_the_snippet_names_the_pools_that_its_depths_hold_for(pools: tuple[str, str], words: str) -> None:
    won = [cell(load, 4, 300.0, pool=pool) for load, pool in zip((1, 4), pools, strict=True)]
    lost = [cell(load, 4, 250.0, pool="ngram") for load in (1, 4)]
    plain = [cell(load, 0, 100.0) for load in (1, 4, 64)]
    snippet = config_snippet(choose([*plain, *lost, *won]))
    assert words in snippet.replace("\n", " ")
    assert yaml.safe_load(snippet)["speculative_config"]["num_speculative_tokens"] == 4


def test_a_cluster_that_never_gains_is_told_to_leave_drafts_out() -> None:
    snippet = config_snippet(choose([cell(1, 0, 100.0), cell(1, 4, 90.0)]))
    assert "leave draft_pools out" in snippet
    assert yaml.safe_load(snippet) is None


def test_step_times_are_found_in_the_cells_that_they_made() -> None:
    cells = []
    for load in (1, 4, 16):
        for depth in (0, 4):
            step_s = 0.020 + 0.001 * load * (1 + depth)
            accepted = 1.5 if depth else 0.0
            rounds = {"rounds": 100, "proposed_at": (100,), "accepted_at": (150,)} if depth else {}
            cells.append(cell(load, depth, load * (1 + accepted) / step_s, **rounds))
    cost = fit_cost(cells)
    assert cost is not None
    assert cost.step_s(StepLoad(8, 24)) == pytest.approx(0.044, rel=0.05)
