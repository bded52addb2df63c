"""Base of every settings class: frozen, no unknown keys, fields documented by a string under each."""

from __future__ import annotations

import math
import re
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict

_UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30}
MOST_BYTES = 1 << 50
"""More memory than any machine has; a bound for sizes that are set."""
NAME_PATTERN = r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"
"""Names that people give to parts of a cluster: short and plain, since they become labels and names of deployments."""
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*")


class Settings(BaseModel):
    """A frozen settings object that refuses unknown keys, and numbers that are not finite."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)


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
    size = float(match[1]) * _UNITS[match[2].lower()]
    if not math.isfinite(size):
        raise ValueError("expected a size such as 512MiB or 1GiB")
    return int(size)


ByteSize = Annotated[int, BeforeValidator(parse_bytes)]
"""A number of bytes, written as an integer or as text with a unit (``512MiB``)."""
