"""The parts of a draft worker on a bench: a clock moved by hand, metrics to read, rows in few words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from prometheus_client import CollectorRegistry

from outrider_draft.changes import Changes
from outrider_draft.config import NgramPoolSettings
from outrider_draft.metrics import DraftMetrics, DropReason
from outrider_draft.session_rules import Lessee, SessionRules
from outrider_draft.session_store import SessionStore
from outrider_runtime.clock import ManualClock
from outrider_wire.drafting import Close, CloseOutcome, Commit, Open, VerifierRound

VOCAB_SIZE = 1000
FINGERPRINT = "f" * 64
LESSEE = Lessee("verifier", lease_s=30.0)


def pool(**keys: object) -> NgramPoolSettings:
    """An n-gram pool with these keys."""
    return NgramPoolSettings.model_validate({"name": "pool", "prompt_lookup_min": 2, "prompt_lookup_max": 4, **keys})


def opening(session: int, ids: Sequence[int], epoch: int = 1, depth_cap: int = 8) -> Open:
    """An open of a session with these ids."""
    return Open(session, epoch, tuple(ids), max(1, len(ids)), depth_cap)


def commit(session: int, base: int, ids: Sequence[int] = (), epoch: int = 1, depth: int = 0) -> Commit:
    """A commit of these ids."""
    return Commit(session, epoch, base, tuple(ids), depth)


def close(session: int, epoch: int = 1, outcome: CloseOutcome = CloseOutcome.FINISHED) -> Close:
    """A close."""
    return Close(session, epoch, outcome)


class Metrics:
    """Reads the metrics of one worker."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def value(self, name: str, **labels: str) -> float:
        """A sample, 0 if there is none yet."""
        found: Mapping[str, str] = {"pool": "pool", **labels}
        return self._registry.get_sample_value(f"outrider_draft_{name}", dict(found)) or 0.0

    def dropped(self, reason: DropReason) -> float:
        """Things dropped for a reason."""
        return self.value("dropped_total", reason=reason.value)


class SessionBench:
    """Store and rules; `proposer_bytes` is a byte for each id."""

    def __init__(self, **keys: object) -> None:
        self.clock = ManualClock()
        self.registry = CollectorRegistry()
        self.metrics = Metrics(self.registry)
        self.store = SessionStore(pool(**keys), lambda length: length, self.clock)
        self.counters = DraftMetrics(self.registry, "pool")
        self.rules = SessionRules(self.store, pool(**keys), VOCAB_SIZE, self.clock, self.counters)

    def send(self, *rows: Open | Commit | Close, lessee: Lessee = LESSEE) -> Changes:
        """Apply one frame of these rows."""
        frame = VerifierRound(
            opens=tuple(row for row in rows if isinstance(row, Open)),
            commits=tuple(row for row in rows if isinstance(row, Commit)),
            closes=tuple(row for row in rows if isinstance(row, Close)),
        )
        return self.rules.apply(lessee, frame)
