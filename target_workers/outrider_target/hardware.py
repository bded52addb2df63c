"""The machine that steps run on, in words that differ where speed does. Imports no torch: of GPUs it says only that."""

from __future__ import annotations

import os
import platform
from pathlib import Path

_NVIDIA = Path("/dev/nvidiactl")


def cpu_name() -> str:
    """The processors of this machine."""
    return f"{_cpu_model()}, {os.cpu_count()} CPUs"


def may_have_gpu() -> bool:
    """Whether steps might run on a GPU; whether it is of use, and which one it is, torch must say."""
    return _NVIDIA.exists()


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
