"""Settings of the verifier's side of the round protocol. Times say their unit; every bound keeps a worker harmless."""

from __future__ import annotations

from pydantic import Field, model_validator

from outrider_runtime.settings import ByteSize, Settings


class DraftingSettings(Settings):
    """How long to wait for draft workers, how to treat those that fail or lie, and how much may be in flight."""

    draft_deadline_ms: float = Field(default=20.0, gt=0, le=10_000)
    """A round waits for missing drafts no longer than this."""
    lease_ms: int = Field(default=30_000, ge=100, le=3_600_000)
    """A draft worker frees a session without traffic after this time."""
    handshake_timeout_ms: int = Field(default=5_000, ge=10, le=60_000)
    """A worker that has not answered the introduction by then is tried again later. No round waits for it."""
    reconnect_first_ms: int = Field(default=50, ge=1, le=60_000)
    """First pause before a lost link is opened again; it doubles with every failure."""
    reconnect_max_ms: int = Field(default=5_000, ge=1, le=600_000)
    """Longest pause between attempts to open a link."""
    mismatch_retry_ms: int = Field(default=30_000, ge=1, le=3_600_000)
    """Pause after a worker turned out to serve another tokenizer, vocabulary, version or pool."""
    breaker_misses: int = Field(default=3, ge=1, le=1_000)
    """A link that misses this many deadlines in a row is not waited for until it delivers in time again."""
    probe_ms: int = Field(default=1_000, ge=1, le=3_600_000)
    """A link that lost its sessions by missing deadlines is tried with a new one after this time."""
    malformed_rows: int = Field(default=3, ge=1, le=1_000)
    """Malformed rows of one worker before the whole worker is quarantined; each quarantines its session at once."""
    quarantine_first_ms: int = Field(default=1_000, ge=1, le=3_600_000)
    """First quarantine of a worker; it doubles with every further one."""
    quarantine_max_ms: int = Field(default=60_000, ge=1, le=3_600_000)
    """Longest quarantine. A worker that behaves for this long starts afresh."""
    refusal_retry_ms: int = Field(default=1_000, ge=1, le=600_000)
    """A worker that refused a session for want of room is not asked to hold one again before this time."""
    max_frame_bytes: ByteSize = Field(default=256 * 1024, ge=1024, le=4 << 20)
    """One frame to a worker is closed at about this size; what is left follows in the next."""
    max_pending_closes: int = Field(default=4_096, ge=1, le=1 << 20)
    """Closes kept for a stalled link; beyond that the worker's lease frees the sessions."""
    unsolicited_rows: int = Field(default=1_024, ge=16, le=1 << 20)
    """Rows that a worker may send beyond those that it was asked for before that counts as flooding."""
    resyncs_per_session: int = Field(default=8, ge=1, le=1_000)
    """Resyncs of one session on one worker without a usable answer in between; more are malformed."""
    min_confidence: float = Field(default=0.0, ge=0, le=1)
    """A proposal is cut before the first id with a lower confidence."""
    acceptance_memory_rounds: int = Field(default=256, ge=1, le=1 << 20)
    """Rounds after which an observation of acceptance has lost most of its weight."""
    drafting_price: float = Field(default=0.1, ge=0, le=1_000)
    """Seconds of the target that a second of drafting is worth: a pool that brings less is not asked. 0 asks all."""
    explore_rounds: int = Field(default=16, ge=1, le=1 << 20)
    """A pool that is not worth its time is asked again after this many rounds of a request."""
    explore_share: float = Field(default=0.05, gt=0, le=1)
    """Share of the target's time that asking such pools again may be worth; dear ones wait longer for that."""

    @model_validator(mode="after")
    def _check_ranges(self) -> DraftingSettings:
        """First pauses must not exceed the longest ones."""
        for name in ("reconnect", "quarantine"):
            first, longest = getattr(self, f"{name}_first_ms"), getattr(self, f"{name}_max_ms")
            if first > longest:
                raise ValueError(f"{name}_first_ms {first} exceeds {name}_max_ms {longest}")
        return self
