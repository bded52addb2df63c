"""How long a token of a request may take, by the latency class that the request names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class LatencyObjectives:
    """Seconds per token that requests should see at most; None: as many tokens a second as possible."""

    unnamed_s: float | None = None
    """Of requests that name no class."""
    by_class_s: Mapping[str, float | None] = field(default_factory=dict)

    def of(self, latency_class: str | None) -> float | None:
        """The objective of a request. Classes that do not exist were refused; here they count as none."""
        return self.unnamed_s if latency_class is None else self.by_class_s.get(latency_class, self.unnamed_s)


NO_OBJECTIVES = LatencyObjectives()
"""Every request wants as many tokens a second as possible."""
