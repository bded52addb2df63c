"""What was seen of the depth, as text. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from depth_watch import DepthSample


def timeline(samples: Sequence[DepthSample], began_s: float) -> str:
    """A line for each change of depth or reason, with seconds since `began_s`."""
    lines = []
    for _, group in groupby(samples, key=lambda sample: (sample.depth, sample.reason)):
        sample = next(group)
        lines.append(f"{sample.at_s - began_s:7.1f} s  depth {sample.depth}  {sample.reason}")
    return "\n".join(lines)
