"""What the load of a draft pool calls for, and why."""

from __future__ import annotations

from dataclasses import replace

import pytest

from outrider_cluster.scaling.pool_rule import MOST_QUEUED_ROWS, PoolLoad, pool_wish
from outrider_cluster.scaling.wish import ScalingReason
from outrider_draft.scaling_settings import PoolScaling

AIMS = PoolScaling(min_replicas=0, max_replicas=16, target_late_ratio=0.1, target_busy_ratio=0.5, min_tokens_per_s=2.0)
GOOD = PoolLoad(ready=4, wished_per_s=100, accepted_per_s=100, tokens_per_draft=1.0, busy_ratio=0.45)
LATE = replace(GOOD, late_per_s=40, busy_ratio=0.9)
QUEUED = replace(GOOD, busy_ratio=0.9, queued_rows=4 * MOST_QUEUED_ROWS + 1)


@pytest.mark.parametrize(
    ("load", "current", "wanted", "reason"),
    [
        pytest.param(GOOD, 4, 4, ScalingReason.STEADY, id="drafts come in time"),
        pytest.param(LATE, 4, 8, ScalingReason.LATE_DRAFTS, id="late, busy and worth it: to the busy share aimed at"),
        pytest.param(replace(LATE, busy_ratio=0.5), 4, 5, ScalingReason.LATE_DRAFTS, id="one more at least"),
        pytest.param(LATE, 8, 8, ScalingReason.STARTING, id="those called for are on their way"),
        pytest.param(replace(LATE, busy_ratio=0.45), 4, 4, ScalingReason.NOT_BUSY, id="late, but not for want of them"),
        pytest.param(replace(LATE, tokens_per_draft=0.2), 4, 4, ScalingReason.NOT_WORTH_IT, id="late, and no loss"),
        pytest.param(replace(GOOD, busy_ratio=0.2), 4, 3, ScalingReason.SPARE, id="three can do it"),
        pytest.param(replace(GOOD, busy_ratio=0.32), 4, 4, ScalingReason.STEADY, id="three would be busy again"),
        pytest.param(replace(GOOD, accepted_per_s=3), 4, 3, ScalingReason.LITTLE_BROUGHT, id="they bring too little"),
        pytest.param(replace(GOOD, ready=1, accepted_per_s=0), 1, 1, ScalingReason.STEADY, id="the last one stays"),
        pytest.param(
            replace(GOOD, ready=3, busy_ratio=0.1), 4, 4, ScalingReason.STEADY, id="none goes while one starts"
        ),
        pytest.param(PoolLoad(ready=4), 4, 0, ScalingReason.NOTHING_WANTED, id="nobody wants anything"),
        pytest.param(
            PoolLoad(0, 5, 5), 0, 1, ScalingReason.NO_WORKER, id="somebody wants something, and none is there"
        ),
        pytest.param(PoolLoad(0, 5, 5), 2, 2, ScalingReason.STARTING, id="those that there should be are starting"),
        pytest.param(PoolLoad(ready=0), 0, 0, ScalingReason.NOTHING_WANTED, id="asleep"),
        pytest.param(QUEUED, 4, 8, ScalingReason.QUEUE, id="rows queue up at busy workers, still in time"),
        pytest.param(QUEUED, 8, 8, ScalingReason.STARTING, id="those called for will shorten the queue"),
        pytest.param(
            replace(QUEUED, queued_rows=4 * MOST_QUEUED_ROWS),
            4,
            4,
            ScalingReason.STEADY,
            id="a full step each is no queue",
        ),
        pytest.param(replace(QUEUED, busy_ratio=0.45), 4, 4, ScalingReason.STEADY, id="a burst, and time to spare"),
        pytest.param(replace(QUEUED, accepted_per_s=5), 4, 4, ScalingReason.STEADY, id="a queue for poor drafts"),
        pytest.param(
            replace(QUEUED, busy_ratio=0.2),
            4,
            4,
            ScalingReason.QUEUE_LEFT,
            id="three could do it once the queue is gone",
        ),
        pytest.param(
            replace(QUEUED, busy_ratio=0.45, accepted_per_s=3),
            4,
            3,
            ScalingReason.LITTLE_BROUGHT,
            id="a queue for next to nothing",
        ),
        pytest.param(
            replace(QUEUED, late_per_s=40), 4, 8, ScalingReason.LATE_DRAFTS, id="late drafts say more than the queue"
        ),
    ],
)
def test_a_pool_follows_what_its_drafts_are_worth(
    load: PoolLoad, current: int, wanted: int, reason: ScalingReason
) -> None:
    wish = pool_wish(load, AIMS, current)
    assert (wish.replicas, wish.reason) == (wanted, reason)


def test_an_idle_pool_that_may_not_sleep_goes_to_its_least() -> None:
    aims = PoolScaling(min_replicas=2, max_replicas=4)
    assert pool_wish(PoolLoad(ready=4), aims, 4).replicas == 2


def test_one_more_worker_is_worth_its_share_of_the_late_tokens() -> None:
    assert PoolLoad(ready=3, wished_per_s=10, late_per_s=4, tokens_per_draft=2.0).shadow_price == 2.0


def test_drafts_that_nobody_was_asked_for_are_not_late() -> None:
    assert PoolLoad(ready=1, wished_per_s=10, unserved_per_s=6, late_per_s=1).late_ratio == 0.25
    assert PoolLoad(ready=0, wished_per_s=10, unserved_per_s=10).late_ratio == 0.0


def test_a_decision_says_by_which_numbers() -> None:
    figures = dict(pool_wish(LATE, AIMS, 4).figures)
    assert figures["late_ratio"] == 0.4
    assert figures["shadow_price_tokens_per_s"] == 8.0
    assert dict(pool_wish(QUEUED, AIMS, 4).figures)["queued_per_worker"] == MOST_QUEUED_ROWS + 0.25
