"""Requests and their draft sessions: opened in every eligible pool, kept in step with every commit, freed at the end.

Pure bookkeeping: no thread, no network, no lock. Its caller makes sure that one thread at a time is inside.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from outrider_runtime.clock import Clock
from outrider_target.control.pool_arbiter import PoolArbiter
from outrider_target.drafting.arbitration import Arbitration
from outrider_target.drafting.linked_worker import LinkedWorker
from outrider_target.drafting.metrics import DraftingMetrics
from outrider_target.drafting.placement import Placement
from outrider_target.drafting.session import DraftedRequest, DraftSession, Want
from outrider_target.drafting.speculator import CommittedRow, SessionSpec
from outrider_wire.drafting import CloseOutcome


class SessionBook:
    """All requests with draft sessions, by the engine's key.

    Args:
        clock: monotonic time.
        metrics: counters of drafting.
        arbiter: chooses among the pools of a request.
    """

    def __init__(self, clock: Clock, metrics: DraftingMetrics, arbiter: PoolArbiter) -> None:
        self._clock = clock
        self._metrics = metrics
        self._numbers = itertools.count(1)
        self._requests: dict[int, DraftedRequest] = {}
        self.placement = Placement(clock, metrics)
        self.arbitration = Arbitration(arbiter, self.placement, metrics)

    def __len__(self) -> int:
        return len(self._requests)

    def request(self, key: int) -> DraftedRequest | None:
        """The request of that key, if it has sessions."""
        return self._requests.get(key)

    def open(self, spec: SessionSpec) -> None:
        """Open a session in every eligible pool that has a worker; other pools join when a worker appears."""
        request = DraftedRequest(spec, list(spec.token_ids))
        self._requests[spec.key] = request
        for pool in sorted(self.placement.pools()):
            self._join(request, pool)

    def commit(self, row: CommittedRow) -> None:
        """Note what a request committed. A base below what is known is a rewind, and a new epoch everywhere.

        Nothing is asked for twice after the same ids: two answers could differ, and that would look like a lie.
        """
        request = self._requests.get(row.key)
        if request is None or not (row.delta or request.wants_nothing_after(row.base_length)):
            return
        assert row.base_length <= len(request.ids), f"commit after {row.base_length} ids, have {len(request.ids)}"
        rewound = row.base_length < len(request.ids)
        self.arbitration.learn(request, row)
        del request.ids[row.base_length :]
        request.ids.extend(row.delta)
        now_s = self._clock.now_s()
        request.want = Want(len(request.ids), row.next_depth, now_s) if row.next_depth > 0 else None
        self.arbitration.choose(request)
        for session in request.sessions.values():
            self._follow(session, rewound, now_s)

    def close(self, key: int, outcome: CloseOutcome) -> None:
        """Free a request's sessions everywhere."""
        request = self._requests.pop(key, None)
        if request is None:
            return
        self.arbitration.forget(key)
        for session in request.sessions.values():
            self.placement.release(session, outcome)

    def connect(self, worker: LinkedWorker) -> None:
        """A link became ready: requests without a session in its pool get one."""
        self.placement.add(worker)
        for request in self._requests.values():
            self._join(request, worker.pool)

    def disconnect(self, worker: LinkedWorker) -> None:
        """A link was lost."""
        self.placement.remove(worker)

    def workers_of(self, keys: Sequence[int]) -> tuple[LinkedWorker, ...]:
        """Workers that hold sessions of these requests and owe them an answer, each once."""
        owing: dict[str, LinkedWorker] = {}
        for key in keys:
            request = self._requests[key]
            for session in request.sessions.values():
                worker = self.placement.worker_of(session)
                if worker is not None and session.awaits_answer(len(request.ids)):
                    owing[worker.name] = worker
        return tuple(owing.values())

    def _join(self, request: DraftedRequest, pool: str) -> None:
        if request.spec.pool not in (None, pool):
            return
        session = request.sessions.get(pool)
        if session is None:
            session = request.sessions[pool] = DraftSession(next(self._numbers), pool, request)
        if session.worker is None:
            self.placement.place(session)

    def _follow(self, session: DraftSession, rewound: bool, now_s: float) -> None:
        """Bring one session in step with its request."""
        reason = session.inbox.discard_overtaken(session.request.ids)
        if reason is not None:
            self._metrics.dropped.note(session.pool, reason.value)
        session.wish(now_s)
        if session.worker is None:
            self.placement.place(session)  # a refusal may have lapsed, a worker may have come
        elif rewound:
            self.placement.reopen(session)
        elif (worker := self.placement.worker_of(session)) is not None:
            worker.outbox.mark(session)
