"""Builds a target's depth policy, after its steps were measured if the policy needs to know what they cost."""

from __future__ import annotations

from pathlib import Path

from outrider_runtime.clock import SystemClock
from outrider_runtime.models.demo import default_cache_dir
from outrider_target.control.cost_profile import CostProfile, ProfileKey
from outrider_target.control.refined_cost import RefinedCost
from outrider_target.cost_profiler import StepBounds, cost_profile, given_profile, hardware_name, library_versions
from outrider_target.depth_control import DepthControl
from outrider_target.forward import Forward
from outrider_target.target_spec import TargetSpec


def depth_control(spec: TargetSpec, forward: Forward, weight_version: str, forward_name: str) -> DepthControl:
    """The policy of a target.

    Args:
        spec: what is served and how.
        forward: the model, which may be left with a small cache.
        weight_version: of its weights.
        forward_name: which forward pass it is.

    Raises:
        InvalidConfig: the profile that the configuration names does not hold here.
    """
    plan = spec.depth
    cost = RefinedCost(_profile(spec, forward, weight_version, forward_name).model()) if plan.needs_costs else None
    return DepthControl(plan.policy(spec.target.max_num_seqs, SystemClock(), cost), plan.objectives)


def step_bounds(spec: TargetSpec) -> StepBounds:
    """The steps that can occur at a target."""
    target = spec.target
    return StepBounds(target.max_num_seqs, spec.depth.max_depth, target.max_model_len, target.max_num_batched_tokens)


def _profile(spec: TargetSpec, forward: Forward, weight_version: str, forward_name: str) -> CostProfile:
    key = ProfileKey(
        model=weight_version,
        dtype=spec.model.dtype,
        tensor_parallel_size=spec.target.tensor_parallel_size,
        threads=spec.target.num_threads,
        hardware=hardware_name(spec.target.device),
        versions=library_versions(forward_name),
    )
    if spec.depth.dynamic.profile is not None:
        return given_profile(Path(spec.depth.dynamic.profile), key, step_bounds(spec))
    cache_dir = default_cache_dir() if spec.model.cache_dir is None else Path(spec.model.cache_dir)
    return cost_profile(forward, key, step_bounds(spec), folder=cache_dir / "profiles", clock=SystemClock())
