"""Every lie by name, and the counter of the verifier that must tell of it."""

from __future__ import annotations

from collections.abc import Mapping

from outrider_doubles import lies
from outrider_doubles.lies import Lie

SHOWN_BY: Mapping[str, tuple[str, ...]] = {
    "replaying": ("dropped_proposals", "duplicate"),
    "lagging": ("dropped_proposals", "late"),
    "past epoch": ("dropped_proposals", "stale"),
    "foreign session": ("dropped_proposals", "unknown_session", "malformed", "late"),
    "contradicting": ("quarantines", "malformed_rows"),
    "beyond vocabulary": ("quarantines", "malformed_rows"),
    "largest id": ("quarantines", "malformed_rows"),
    "negative ids": ("quarantines", "malformed_rows"),
    "too many ids": ("quarantines", "malformed_rows"),
    "future base": ("quarantines", "malformed_rows"),
    "future epoch": ("quarantines", "malformed_rows"),
    "confident of nothing": ("quarantines", "malformed_rows"),
    "too few confidences": ("quarantines", "malformed_rows"),
    "forgetting": ("quarantines", "malformed_rows"),
    "garbage": ("quarantines", "malformed_frame"),
    "truncated": ("quarantines", "malformed_frame"),
    "avalanche": ("quarantines", "malformed_frame"),
    "flooding": ("quarantines", "flood"),
    "refusing": ("refusals",),
    "hanging up": ("failovers",),
    "oversized": ("failovers",),
    "silent": ("deadline_misses",),
}
"""Name of a counter of the links, and the reasons or offences of which one must be counted."""
HARMLESS = ("honest", "wrong ids")
"""No counter of the links tells of these: such proposals are verified."""


def lie_named(name: str) -> Lie:
    """A new teller of that lie."""
    if name == "lagging":
        return lies.Lagging()
    lie: Lie = getattr(lies, name.replace(" ", "_"))
    return lie
