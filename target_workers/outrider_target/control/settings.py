"""Settings of the dynamic depth policy."""

from __future__ import annotations

import re

from pydantic import Field, field_validator

from outrider_runtime.errors import shorten
from outrider_runtime.settings import NAME_PATTERN, Settings


class LatencyClass(Settings):
    """Requests that name it in `speculation.latency_class`."""

    token_latency_ms: float | None = Field(default=None, ge=0.01)
    """Time per token that one of its requests should see at most; None: as many tokens a second as possible."""


class DepthSettings(Settings):
    """When the dynamic policy changes its mind, and what it may spend on trying."""

    dwell_ms: int = Field(default=250, ge=0, le=60_000)
    """The depth changes at most once in this time."""
    min_gain: float = Field(default=0.01, ge=0, le=1)
    """A deeper plan must promise this share of goodput more than the present one. A shallower one half of it."""
    probe_share: float = Field(default=0.005, ge=1e-6, le=0.1)
    """Share of the time that may be spent on trying whether drafts pay again, while they do not."""
    profile: str | None = Field(default=None, pattern="^/")
    """File with step costs, as an absolute path; None measures them at the first start and keeps them."""
    token_latency_ms: float | None = Field(default=None, ge=0.01)
    """As in a latency class, for requests that name none."""
    latency_classes: dict[str, LatencyClass] = Field(default_factory=dict)
    """Classes of requests, by the name that requests give."""

    @field_validator("latency_classes")
    @classmethod
    def _check_names(cls, classes: dict[str, LatencyClass]) -> dict[str, LatencyClass]:
        """Names are short and plain, as those of pools are."""
        for name in classes:
            if re.fullmatch(NAME_PATTERN, name) is None:
                raise ValueError(f"{shorten(name)} is no name for a class: 1 to 63 of a-z, 0-9 and -, no - at an end")
        return classes
