"""Files of step costs, taken for a model folder as a target on this machine takes them."""

from __future__ import annotations

from pathlib import Path

import numba
from torch.version import __version__ as torch_version

from outrider_target.control.cost_model import StepLoad, StepSample
from outrider_target.control.cost_profile import CostProfile, ProfileKey
from outrider_target.hardware import cpu_name
from outrider_target.weight_version import weight_version


def taken_profile(model: Path, dtype: str = "float32", threads: int = 1) -> CostProfile:
    """Step costs of `model` as measured here, on one rank."""
    versions = f"torch {torch_version}, numba {numba.__version__}, lean decoder"
    key = ProfileKey(weight_version(model, dtype), dtype, 1, threads, cpu_name(), versions)
    return CostProfile(key, tuple(StepSample(StepLoad(n, n), 0.02 + 0.001 * n) for n in (1.0, 8.0, 64.0)))
