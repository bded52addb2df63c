"""Which target gets a request: the least loaded one."""

from __future__ import annotations

from collections import defaultdict

from outrider_cluster.simulator.target import Target


class LeastLoaded:
    """Targets by how many requests they have, so that the choice takes no search."""

    def __init__(self) -> None:
        self._load: dict[Target, int] = {}
        self._targets: defaultdict[int, dict[Target, None]] = defaultdict(dict)
        self._lowest = 0

    def update(self, target: Target) -> None:
        """A target's load has changed, or it came, went down, drains or is gone."""
        before = self._load.pop(target, None)
        if before is not None:
            del self._targets[before][target]
        if target.is_open:
            self._load[target] = target.load
            self._targets[target.load][target] = None
            self._lowest = min(self._lowest, target.load)

    def choose(self) -> Target | None:
        """The target with the fewest requests, the one that has been so longest; None if all are down."""
        if not self._load:
            return None
        while not self._targets[self._lowest]:
            self._lowest += 1
        return next(iter(self._targets[self._lowest]))
