"""A name for a set of weights, equal on every machine that holds the same files."""

from __future__ import annotations

import hashlib
from pathlib import Path

_HEAD_BYTES = 1 << 20


def weight_version(folder: Path, dtype: str) -> str:
    """SHA-256 over names, sizes and beginnings of the weight files, the model's config and the dtype; 32 hex digits.

    The beginning of a safetensors file lists every tensor with its shape and place, so that reading all of a large
    model is not needed to tell two models apart. Two fine-tunings with equal shapes differ in their first weights.
    """
    digest = hashlib.sha256(dtype.encode())
    for path in sorted([*folder.glob("*.safetensors"), folder / "config.json"]):
        digest.update(f"{path.name}\0{path.stat().st_size}\0".encode())
        with path.open("rb") as file:
            digest.update(file.read(_HEAD_BYTES))
    return digest.hexdigest()[:32]
