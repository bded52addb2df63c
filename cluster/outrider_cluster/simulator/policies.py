"""The live policy objects that a scenario asks for, one set for each target."""

from __future__ import annotations

import json
from pathlib import Path

from outrider_cluster.simulator.scenario import Control, StepTime, Targets
from outrider_runtime.clock import Clock
from outrider_runtime.errors import InvalidConfig
from outrider_target.control.cost_model import StepCostModel
from outrider_target.control.cost_profile import load_profile
from outrider_target.control.depth_policy import DepthPolicy
from outrider_target.control.refined_cost import RefinedCost

_PROFILE_KEYS = ("knots", "knot_s", "row_s", "context_s", "pair_s")


def build_policy(control: Control, targets: Targets, cost: StepCostModel, clock: Clock) -> DepthPolicy:
    """The policy of one target.

    Args:
        control: of the scenario.
        targets: of the scenario.
        cost: what steps cost in truth.
        clock: simulated time.

    Raises:
        InvalidConfig: the table is wrong, or the policy's own profile is.
    """
    plan, profile = control.plan, control.dynamic.profile
    believed = cost if profile is None or not plan.needs_costs else read_cost(Path(profile))
    return plan.policy(targets.max_num_seqs, clock, RefinedCost(believed))


def true_cost(targets: Targets, folder: Path) -> StepCostModel:
    """What steps cost: a recorded profile, or the formula of the scenario.

    Raises:
        InvalidConfig: the profile cannot be read, or is none.
    """
    if targets.profile is None:
        return _from_formula(targets.step)
    return read_cost(folder / targets.profile)


def read_cost(file: Path) -> StepCostModel:
    """A cost model from a JSON file: step times that a server keeps, a cost model, or one under the key `cost`.

    Raises:
        InvalidConfig: it cannot be read, or is none.
    """
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidConfig(f"{file}: cannot read the profile: {error}") from error
    if isinstance(document, dict) and "samples" in document:
        return load_profile(file).model()
    found = document.get("cost", document) if isinstance(document, dict) else None
    if not isinstance(found, dict) or not {"knots", "knot_s"} <= found.keys():
        raise InvalidConfig(f"{file}: no step profile; keys: {', '.join(_PROFILE_KEYS)}, or samples")
    unknown = sorted(found.keys() - set(_PROFILE_KEYS))
    if unknown:
        raise InvalidConfig(f"{file}: unknown keys {', '.join(unknown)}; keys: {', '.join(_PROFILE_KEYS)}")
    try:
        shares = {name: float(found.get(name, 0.0)) for name in _PROFILE_KEYS[2:]}
        return StepCostModel(tuple(map(float, found["knots"])), tuple(map(float, found["knot_s"])), **shares)
    except (TypeError, ValueError) as error:
        raise InvalidConfig(f"{file}: a step profile holds numbers only: {error}") from error


def _from_formula(step: StepTime) -> StepCostModel:
    base_s, token_s = step.base_ms / 1e3, step.token_ms / 1e3
    shares = {"row_s": step.row_ms / 1e3, "context_s": step.context_token_us / 1e6}
    if step.compute_bound_from_tokens is None:
        return StepCostModel((0.0, 1.0), (base_s, base_s + token_s), **shares)
    knee = float(step.compute_bound_from_tokens)
    return StepCostModel((0.0, knee, knee + 1.0), (base_s, base_s, base_s + token_s), **shares)
