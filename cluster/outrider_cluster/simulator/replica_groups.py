"""How many there are of each kind of process in a simulated cluster, and how one more comes or goes."""

from __future__ import annotations

from collections.abc import Callable

from outrider_cluster.simulator.announcing import Announcing
from outrider_cluster.simulator.fleet import Fleet
from outrider_cluster.simulator.gateways import Gateway, GatewayTier
from outrider_cluster.simulator.pool import Pool
from outrider_cluster.simulator.routing import Router
from outrider_cluster.simulator.target import Target
from outrider_cluster.simulator.timeline import Timeline


class TargetGroup:
    """Targets. One that is too many gets nothing new, finishes what it has, and is gone.

    Args:
        fleet: has them.
        router: told of those that come and go.
        announcing: told of those that come and go.
        timeline: simulated time.
        drain_s: how long one may take to finish.
    """

    def __init__(
        self, fleet: Fleet, router: Router, announcing: Announcing, timeline: Timeline, drain_s: float
    ) -> None:
        self._fleet = fleet
        self._router = router
        self._announcing = announcing
        self._timeline = timeline
        self._drain_s = drain_s

    @property
    def present(self) -> int:
        """Targets that do not drain."""
        return sum(not target.is_draining for target in self._fleet.targets)

    def start(self) -> None:
        """One more."""
        target = self._fleet.add_target()
        self._announcing.target(target)
        self._router.update(target)

    def stop(self) -> None:
        """The newest drains."""
        target = next(target for target in reversed(self._fleet.targets) if not target.is_draining)
        target.is_draining = True
        self._router.update(target)
        if target.load:
            self._timeline.after(self._drain_s, lambda: self._remove(target))
        else:
            self._remove(target)

    def finished(self, target: Target) -> None:
        """A target finished a step: one that drains and has nothing left is gone."""
        if target.is_draining and not target.load:
            self._remove(target)

    def _remove(self, target: Target) -> None:
        if target.is_gone:
            return
        self._announcing.leave(target)
        left = target.take_all()
        self._fleet.remove_target(target)
        self._router.update(target)
        self._router.lost(target, left)


class WorkerGroup:
    """Draft workers of one pool. One that is too many leaves at once: its sessions go to others.

    Args:
        pool: has them.
        announcing: told of those that come.
        timeline: simulated time.
    """

    def __init__(self, pool: Pool, announcing: Announcing, timeline: Timeline) -> None:
        self._pool = pool
        self._announcing = announcing
        self._timeline = timeline

    @property
    def present(self) -> int:
        """All workers."""
        return len(self._pool.workers)

    def start(self) -> None:
        """One more."""
        self._announcing.worker(self._pool, self._pool.add_worker(self._timeline.now_s))

    def stop(self) -> None:
        """The newest goes."""
        self._pool.remove_worker(self._timeline.now_s)


class GatewayGroup:
    """Gateways. One that is too many gets nothing new, and ends after a time with whatever it still holds.

    Args:
        tier: has them.
        announce: begins the heartbeats of a new one.
        timeline: simulated time.
        drain_s: how long that is.
    """

    def __init__(
        self, tier: GatewayTier, announce: Callable[[Gateway], None], timeline: Timeline, drain_s: float
    ) -> None:
        self._tier = tier
        self._announce = announce
        self._timeline = timeline
        self._drain_s = drain_s

    @property
    def present(self) -> int:
        """Gateways that do not drain."""
        return sum(not gateway.is_draining for gateway in self._tier.gateways)

    def start(self) -> None:
        """One more."""
        self._announce(self._tier.add())

    def stop(self) -> None:
        """The newest drains."""
        gateway = next(gateway for gateway in reversed(self._tier.gateways) if not gateway.is_draining)
        gateway.is_draining = True
        self._timeline.after(self._drain_s, lambda: self._tier.remove(gateway))
