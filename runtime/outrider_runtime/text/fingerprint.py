"""A fingerprint that is equal for two tokenizers exactly when they turn the same text into the same ids."""

from __future__ import annotations

import hashlib
import json
from typing import Any

_COMPARED = ("normalizer", "pre_tokenizer", "post_processor", "decoder")


def fingerprint(definition: dict[str, Any]) -> str:
    """SHA-256 (hex) of the canonical form of the contents of tokenizer.json.

    Vocabulary, merges, normaliser, pre-tokeniser, post-processor, decoder and added tokens count. The order of keys,
    the two spellings of merges ("a b" and ["a", "b"]), truncation and padding do not.
    """
    model = dict(definition["model"])
    if "merges" in model:
        model["merges"] = [merge.split(" ", 1) if isinstance(merge, str) else merge for merge in model["merges"]]
    canonical = {
        "model": model,
        "added_tokens": sorted(definition.get("added_tokens") or [], key=lambda token: token["id"]),
        **{name: definition.get(name) for name in _COMPARED},
    }
    text = json.dumps(canonical, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
