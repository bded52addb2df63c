"""Serve's custom autoscaling policy: does what our controller decided. Runs in Serve's controller, ten times a second.

Whatever goes wrong keeps the number that there is, and says why. Serve copies this module into its controller's
process, state and all, so what policies share is in another one, `board`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from outrider_cluster.scaling import board

if TYPE_CHECKING:
    from ray.serve.config import AutoscalingContext

_log = logging.getLogger("ray.serve")


class FollowController:
    """The policy of a deployment with a changing number of replicas.

    Args:
        now_s: monotonic time.
    """

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._trouble: str | None = None

    def __call__(self, context: AutoscalingContext) -> tuple[int, dict[str, Any]]:
        """Replicas that there should be, and no state for Serve to keep."""
        try:
            decided = board.read(context.app_name or "", context.deployment_name, self._now_s())
            trouble = None if decided is not None else "the controller has decided nothing of late"
        except Exception as error:  # an error here would stop Serve from scaling anything
            decided, trouble = None, f"{type(error).__name__}: {error}"
        if trouble != self._trouble:
            self._trouble = trouble
            kept = "follows the controller" if trouble is None else f"keeps {context.target_num_replicas} replicas"
            _log.info("%s %s%s", context.deployment_name, kept, "" if trouble is None else f": {trouble}")
        return context.target_num_replicas if decided is None else decided, {}


class PostDecisions:
    """The policy of our controller's deployment: keeps its number, and posts what its replica reports.

    Args:
        now_s: monotonic time.
    """

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._trouble: str | None = None

    def __call__(self, context: AutoscalingContext) -> tuple[int, dict[str, Any]]:
        """The number that there is, and no state for Serve to keep."""
        try:
            self._post(context)
            trouble = None
        except Exception as error:  # as above
            trouble = f"{type(error).__name__}: {error}"
        if trouble is not None and trouble != self._trouble:
            _log.warning("the controller's decisions cannot be read: %s", trouble)
        self._trouble = trouble
        return context.target_num_replicas, {}

    def _post(self, context: AutoscalingContext) -> None:
        for name, reports in (context.raw_metrics or {}).items():
            points = [series[-1] for series in reports.values() if series]
            if name.startswith(board.PREFIX) and points:
                newest = max(points, key=lambda point: point.timestamp)
                deployment, replicas = name.removeprefix(board.PREFIX), round(newest.value)
                board.post(context.app_name or "", deployment, replicas, newest.timestamp, self._now_s())
