"""Which draft worker of a pool holds a session: weighted rendezvous hashing, so that choices stay put.

Every worker gets a score from (session, worker) alone; the highest wins. When a worker leaves, only its sessions move;
when one joins, it takes its share of the new ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b


@dataclass(frozen=True, slots=True)
class Candidate:
    """A worker that could hold a session. `room`: free sessions as far as known; `healthy`: worth waiting for."""

    worker: str
    room: int
    healthy: bool


def choose_worker(session: int, candidates: Iterable[Candidate]) -> str | None:
    """The worker to hold `session`: healthy before unhealthy, then by rendezvous hashing weighted by room.

    A worker without room is the last resort: what we know of its load may be old, and it can still refuse.
    """
    best = max(candidates, key=lambda candidate: _rank(session, candidate), default=None)
    return best.worker if best is not None else None


@dataclass(frozen=True, slots=True, order=True)
class _Rank:
    healthy: bool
    has_room: bool
    score: float
    worker: str


def _rank(session: int, candidate: Candidate) -> _Rank:
    weight = max(1, candidate.room)
    score = -weight / math.log(_unit_hash(session, candidate.worker))
    return _Rank(candidate.healthy, candidate.room > 0, score, candidate.worker)


def _unit_hash(session: int, worker: str) -> float:
    """A number strictly between 0 and 1 that depends on nothing but the pair."""
    digest = blake2b(worker.encode(), key=session.to_bytes(8, "little"), digest_size=6).digest()
    return (int.from_bytes(digest, "little") + 0.5) / 2.0**48
