"""A draft worker that goes says so with its last word, whatever happens while it ends."""

from __future__ import annotations

import warnings
from types import SimpleNamespace
from typing import Any, cast

import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of pydantic, about how Serve defines its own settings
    from outrider_cluster.replicas.draft_replica import DraftReplica


class Ending:
    """Notes that it was stopped, and fails if it is to."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.is_stopped = False
        self._failure = failure

    async def stop(self, *_grace_s: float) -> None:
        """End."""
        self.is_stopped = True
        if self._failure is not None:
            raise self._failure


async def test_a_worker_that_fails_to_stop_still_says_that_it_goes() -> None:
    worker, heartbeat = Ending(RuntimeError("cannot end")), Ending()
    replica = cast("DraftReplica", SimpleNamespace(_worker=worker, _heartbeat=heartbeat))
    with pytest.raises(RuntimeError, match="cannot end"):
        await cast("Any", DraftReplica).__del__(replica)
    assert worker.is_stopped and heartbeat.is_stopped
