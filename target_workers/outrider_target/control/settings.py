"""Settings of the dynamic depth policy."""

from __future__ import annotations

from pydantic import Field

from outrider_runtime.settings import Settings


class DepthSettings(Settings):
    """When the dynamic policy changes its mind, and what it may spend on trying."""

    dwell_ms: int = Field(default=250, ge=0, le=60_000)
    """The depth changes at most once in this time."""
    min_gain: float = Field(default=0.01, ge=0, le=1)
    """A deeper plan must promise this share of goodput more than the present one. A shallower one half of it."""
    probe_share: float = Field(default=0.005, gt=0, le=0.1)
    """Share of the time that may be spent on trying whether drafts pay again, while they do not."""
    profile: str | None = Field(default=None, pattern="^/")
    """File with step costs, as an absolute path; None measures them at the first start and keeps them."""
    token_latency_ms: float | None = Field(default=None, gt=0)
    """Time per token that a request should see at most; None: as many tokens a second as possible."""
