"""How many attention heads a model has, and among how many processes they divide. Imports no torch."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class HeadCounts:
    """Heads of one layer; None where a configuration does not say."""

    num_attention_heads: int | None
    num_key_value_heads: int | None

    @property
    def sizes(self) -> tuple[int, ...]:
        """Numbers of ranks among which they divide."""
        most = math.gcd(self.num_attention_heads or 0, self.num_key_value_heads or 0)
        return tuple(size for size in range(1, most + 1) if most % size == 0)

    def refusal(self, num_ranks: int) -> str | None:
        """Why these heads do not divide among so many ranks, with the numbers; None if they do.

        Heads are never shared or copied: each rank's cache holds the keys and values of its own heads only.
        """
        heads = {
            "num_attention_heads": self.num_attention_heads,
            "num_key_value_heads": self.num_key_value_heads,
        }
        odd = {name: count for name, count in heads.items() if count is not None and count % num_ranks}
        if not odd:
            return None
        named = " and ".join(f"{name} = {count}" for name, count in odd.items())
        return f"{named} cannot be divided by tensor_parallel_size = {num_ranks}"


DEMO_HEADS = HeadCounts(num_attention_heads=9, num_key_value_heads=3)
"""Of the embedded model."""


def head_counts(config: Mapping[str, Any]) -> HeadCounts:
    """What a model's configuration says. Without a number of its own there is a key-value head for each query head."""
    heads = _count(config, "num_attention_heads")
    return HeadCounts(heads, _count(config, "num_key_value_heads") or heads)


def head_counts_in(folder: Path) -> HeadCounts | None:
    """Those of a model folder on this machine; None where there is none to be read."""
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(config, dict):
        return None
    text = config.get("text_config")
    return head_counts(text if isinstance(text, dict) else config)


def _count(config: Mapping[str, Any], name: str) -> int | None:
    value = config.get(name)
    return value if isinstance(value, int) and value > 0 else None
