"""Base of every settings class: frozen, no unknown keys, fields documented by a string under each."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict

_UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30}
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*")


class Settings(BaseModel):
    """A frozen settings object that refuses unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


def parse_bytes(value: object) -> object:
    """Turn ``"1GiB"`` into bytes; anything but text passes through for pydantic to judge.

    Raises:
        ValueError: the text is not a number followed by B, kB, MB, GB, KiB, MiB or GiB.
    """
    if not isinstance(value, str):
        return value
    match = _SIZE.fullmatch(value)
    if match is None or match[2].lower() not in _UNITS:
        raise ValueError("expected a size such as 512MiB or 1GiB")
    return int(float(match[1]) * _UNITS[match[2].lower()])


ByteSize = Annotated[int, BeforeValidator(parse_bytes)]
"""A number of bytes, written as an integer or as text with a unit (``512MiB``)."""
