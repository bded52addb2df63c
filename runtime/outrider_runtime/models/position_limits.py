"""How many positions a model knows, which bounds its sequences. Imports no torch."""

from __future__ import annotations

import json
from pathlib import Path

DEMO_POSITIONS = 8192
"""Of the embedded model."""


def positions_in(folder: Path) -> int | None:
    """Those of a model folder on this machine; None where there is none to be read, or its model sets no limit."""
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    text = config.get("text_config") if isinstance(config, dict) else None
    own = text if isinstance(text, dict) else config
    value = own.get("max_position_embeddings") if isinstance(own, dict) else None
    return value if isinstance(value, int) and value > 0 else None
