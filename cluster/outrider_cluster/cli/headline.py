"""The first line of what a cluster says of itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def headline(status: Mapping[str, Any]) -> str:
    """Model, readiness, exactness and depth of a status page. Whether a target is exact is found out as it starts."""
    state = "ready" if status["ready"] else "not ready"
    exact = "exact" if status["exact"] else "not exact" if status["ready"] else "exactness not known yet"
    return f"{status['model']}: {state}, {exact}, depth {status['depth']} ({status['depth_reason']})"
