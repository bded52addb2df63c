"""What is remembered of draft workers that are gone: only of those that were lost, and never without bound."""

from __future__ import annotations

from dataclasses import replace

import pytest
from outrider_doubles.scaling_members import draft, target
from prometheus_client import CollectorRegistry, generate_latest

from outrider_cluster.controller.loss_metrics import LossMetrics
from outrider_cluster.controller.losses import MOST_FAULT_CHARACTERS, MOST_NAME_CHARACTERS, MOST_POOLS, Losses
from outrider_cluster.controller.member_list import Heard
from outrider_runtime.clock import ManualClock
from outrider_wire.losses import LossKind, LostWorker, PoolLosses
from outrider_wire.registry import Member, MemberState

LEAK = "WorkerOvergrown: too much (errors so far: 1)"


def worker(name: str, pool: str = "p", fault: str = "", state: MemberState = MemberState.READY) -> Member:
    member = draft(name, pool)
    assert member.draft is not None
    return replace(member, state=state, draft=replace(member.draft, fault=fault))


def lose(losses: Losses, member: Member, how: LossKind, heard_at_s: float = 0.0) -> None:
    losses.note(Heard(member, "", heard_at_s), how)


def test_the_last_worker_that_was_lost_is_remembered_with_its_fault_and_all_are_counted() -> None:
    clock = ManualClock()
    losses = Losses(clock)
    lose(losses, worker("a", fault=LEAK), LossKind.LEFT, clock.now_s())
    clock.advance(20.0)
    lose(losses, worker("b"), LossKind.SILENT, clock.now_s() - 5.0)
    lose(losses, worker("c", pool="other", fault=LEAK), LossKind.SILENT, clock.now_s())
    clock.advance(2.0)
    assert losses.known() == (
        PoolLosses("other", 1, LostWorker("c", LossKind.SILENT, LEAK, 2.0)),
        PoolLosses("p", 2, LostWorker("b", LossKind.SILENT, "", 7.0)),
    )


@pytest.mark.parametrize(
    ("member", "how", "is_lost"),
    [
        pytest.param(worker("w"), LossKind.LEFT, False, id="it went in order"),
        pytest.param(worker("w", state=MemberState.DRAINING), LossKind.LEFT, False, id="it drained, and went"),
        pytest.param(worker("w", fault=LEAK, state=MemberState.DRAINING), LossKind.LEFT, True, id="replaced"),
        pytest.param(worker("w"), LossKind.SILENT, True, id="it died"),
        pytest.param(worker("w", fault=LEAK), LossKind.SILENT, True, id="it died of what it told"),
        pytest.param(worker("w", state=MemberState.DRAINING), LossKind.SILENT, False, id="only its goodbye is missing"),
        pytest.param(
            worker("w", fault=LEAK, state=MemberState.DRAINING), LossKind.SILENT, True, id="killed in the end"
        ),
        pytest.param(target("t"), LossKind.SILENT, False, id="no draft worker"),
        pytest.param(worker("w", pool=""), LossKind.SILENT, False, id="of no pool"),
    ],
)
def test_going_in_order_is_no_loss(member: Member, how: LossKind, is_lost: bool) -> None:
    losses = Losses(ManualClock())
    lose(losses, member, how)
    assert bool(losses.known()) is is_lost


def test_pools_that_anybody_may_name_are_bounded_the_oldest_loss_goes_first() -> None:
    losses = Losses(ManualClock())
    for number in range(MOST_POOLS):
        lose(losses, worker("w", pool=f"p{number}"), LossKind.SILENT)
    lose(losses, worker("w", pool="p0"), LossKind.SILENT)
    lose(losses, worker("w", pool="one more"), LossKind.SILENT)
    known = {found.pool: found.count for found in losses.known()}
    assert len(known) == MOST_POOLS
    assert "p1" not in known and known["p0"] == 2 and known["one more"] == 1


def test_words_that_anybody_may_say_are_bounded() -> None:
    losses = Losses(ManualClock())
    lose(losses, worker("w", pool="x" * (MOST_NAME_CHARACTERS + 1)), LossKind.SILENT)
    assert losses.known() == ()
    lose(losses, worker("w", pool="x" * MOST_NAME_CHARACTERS, fault="y" * 10_000), LossKind.SILENT)
    (found,) = losses.known()
    assert found.last.fault == "y" * MOST_FAULT_CHARACTERS


def test_losses_are_counted_by_pool() -> None:
    registry, losses = CollectorRegistry(), Losses(ManualClock())
    LossMetrics(registry, losses)
    for name in ("a", "b"):
        lose(losses, worker(name), LossKind.SILENT)
    assert 'outrider_cluster_lost_draft_workers_total{pool="p"} 2.0' in generate_latest(registry).decode()
