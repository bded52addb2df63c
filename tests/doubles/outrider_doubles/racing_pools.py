"""A draft pool of every method that tests deploy, named after it, to be killed and lied to in turn or racing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from outrider_doubles.repository import ROOT

EXAMPLES = ROOT / "examples"
"""Must be importable where the workers of the custom pool run."""
POOL_NAMES = ("ngram", "suffix", "custom")


def racing_pools(phrases: Sequence[Sequence[int]], **keys: object) -> list[dict[str, Any]]:
    """Settings of one pool of each method. They race where `drafting.drafting_price` is 0.

    Args:
        phrases: what the proposer of the examples completes.
        keys: of every pool, besides.
    """
    methods: Mapping[str, Mapping[str, Any]] = {
        "ngram": {"method": "ngram", "prompt_lookup_min": 2, "prompt_lookup_max": 4},
        "suffix": {"method": "suffix", "max_corpus_bytes": "1MiB"},
        "custom": {
            "method": "custom_class",
            "model": "custom_proposer.Dictionary",
            "options": {"phrases": [list(phrase) for phrase in phrases]},
            "call_timeout_ms": 60_000,
        },
    }
    return [{"name": name, **methods[name], **keys} for name in POOL_NAMES]
