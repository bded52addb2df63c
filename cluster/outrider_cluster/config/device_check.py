"""Judges whether a machine has the device that a file asks for."""

from __future__ import annotations

from collections.abc import Iterator

from outrider_cluster.config.finding import Finding
from outrider_target.hardware import may_have_gpu
from outrider_target.settings import TargetSettings


def judge_device(target: TargetSettings) -> Iterator[Finding]:
    """A GPU that targets on this machine would look for in vain; other nodes may have one."""
    if target.device == "cuda" and not may_have_gpu():
        yield Finding(("target", "device"), "needs a GPU, and this machine shows none of NVIDIA's", "cuda", "cpu")
