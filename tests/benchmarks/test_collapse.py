"""The proposer that can be made useless, and what is said of the depth meanwhile."""

from __future__ import annotations

from pathlib import Path

import httpx
import numpy as np
import pytest
import yaml

from collapse import with_switched_pool
from collapse_verdict import Bounds, Spell, collapse_checks
from depth_watch import Counted, DepthSample, DepthWatch
from outrider_cluster.cli.live_metrics import Metrics, parse_metrics
from outrider_draft.base_proposer import ProposerSetup
from outrider_draft.methods import parse_pool
from outrider_draft.proposer import Context, ProposalRequest, SessionFacts
from step_verdict import Check
from switched_proposer import Switched

ROOT = Path(__file__).parents[2]
USELESS, GOOD = Spell(10.0, 20.0), Spell(20.0, 30.0)


def test_a_switched_proposer_is_right_until_the_file_is_there_and_again_after_it(tmp_path: Path) -> None:
    switch = tmp_path / "useless"
    proposer = Switched(ProposerSetup(100, "f", {"useless_while": str(switch)}))
    proposer.open([SessionFacts(1, 4, 8, seed=0, temperature=0.0, top_k=0, top_p=1.0, tenant="")])
    context = Context(1, np.array([5, 6, 99, 8, 5, 6], np.int32))
    proposer.commit([context])
    request = ProposalRequest(context, 2)
    assert proposer.propose([request])[0].token_ids == (99, 8)
    switch.touch()
    spoilt = proposer.propose([request])[0]
    assert spoilt.token_ids == (0, 9)
    assert len(spoilt.confidences) == 2
    switch.unlink()
    assert proposer.propose([request])[0].token_ids == (99, 8)


def test_a_cluster_file_gets_the_switched_pool_in_place_of_its_own(tmp_path: Path) -> None:
    cluster = yaml.safe_load((ROOT / "cluster.yaml").read_text())
    (pool,) = with_switched_pool(cluster, tmp_path)["applications"][0]["args"]["draft_pools"]
    assert parse_pool(pool).name == "switched"
    assert len(cluster["applications"][0]["args"]["draft_pools"]) == 2


def test_a_depth_that_falls_stays_and_returns_passes() -> None:
    assert failing(watched()) == []


@pytest.mark.parametrize(
    ("found", "claim"),
    [
        ({"deep_before": 0}, "drafts pay before"),
        ({"fell_at": 16.0}, "depth falls to 0 when drafts become useless"),
        ({"fell_at": None}, "depth falls to 0 when drafts become useless"),
        ({"back_at": None}, "depth comes back with good drafts"),
        ({"drafting_rounds": 11}, "after 200 rounds it stays there"),
        ({"draft_tokens": 60}, "only probes are drafted at depth 0"),
        ({"wishes": 15}, "only probes are drafted at depth 0"),
    ],
)
def test_what_does_not_hold_is_named(found: dict[str, float], claim: str) -> None:
    assert claim in failing(watched(**found))


def test_a_round_that_drafts_without_being_a_probe_may_draft_for_all_rows() -> None:
    assert failing(watched(drafting_rounds=2, wishes=9 + 4, draft_tokens=30 + 32)) == []


def test_a_time_that_is_too_short_to_tell_is_no_proof() -> None:
    checks = collapse_checks(watched(), USELESS, GOOD, Bounds(350, 350, rows=2, max_depth=8))
    assert [check.claim for check in checks if not check.holds] == ["after 350 rounds it stays there"]


def test_rounds_between_two_readings_are_in_proportion_to_time() -> None:
    watch = watched()
    assert watch.rounds_between(10.25, 12.5) == pytest.approx(90.0)
    assert watch.moment_after(10.25, 90.0) == pytest.approx(12.5)
    assert watch.moment_after(10.25, 1e6) == 30.0
    assert Counted(1.0, watch.readings[1]).rounds == 400


def failing(watch: DepthWatch) -> list[str]:
    checks: list[Check] = collapse_checks(watch, USELESS, GOOD, Bounds(200, 300, rows=2, max_depth=8))
    return [check.claim for check in checks if not check.holds]


def watched(
    deep_before: int = 4,
    fell_at: float | None = 13.0,
    back_at: float | None = 23.0,
    drafting_rounds: int = 0,
    draft_tokens: int = 30,
    wishes: int = 9,
) -> DepthWatch:
    """Thirty seconds of 40 rounds a second; the numbers of drafts are those of the time at depth 0, with 9 probes."""
    watch = DepthWatch(httpx.AsyncClient())
    for tick in range(300):
        at_s = tick / 10
        is_off = fell_at is not None and at_s >= fell_at and not (back_at is not None and at_s >= back_at)
        watch.samples.append(DepthSample(at_s, 0 if is_off else deep_before, "any"))
    drafting = {"best goodput": drafting_rounds, "probe": 9, "drafts do not pay": 200}
    readings = {0.0: (0, 0, {}), 10.0: (0, 0, {}), 15.0: (0, 0, {}), 20.0: (draft_tokens, wishes, drafting)}
    readings[30.0] = readings[20.0]
    watch.readings += [reading(at_s, 40 * at_s, *counts) for at_s, counts in readings.items()]
    return watch


def reading(at_s: float, rounds: float, draft_tokens: int, wishes: int, reasons: dict[str, int]) -> Metrics:
    lines = [
        f"outrider_engine_step_seconds_count {rounds}",
        f"vllm:spec_decode_num_draft_tokens_total {draft_tokens}",
        f"outrider_draft_proposals_total {wishes}",
        *(f'outrider_speculation_decisions_total{{reason="{name}"}} {count}' for name, count in reasons.items()),
    ]
    return parse_metrics("\n".join(lines) + "\n", at_s)
