"""All that a target replica is made from. Imports no torch."""

from __future__ import annotations

from dataclasses import dataclass

from outrider_target.acceptance_rule import COUPLED_RULE, AcceptanceRule
from outrider_target.control.depth_plan import DepthPlan
from outrider_target.drafting.settings import DraftingSettings
from outrider_target.settings import ModelSettings, TargetSettings


@dataclass(frozen=True, slots=True)
class TargetSpec:
    """All that a target replica is made from."""

    model: ModelSettings
    target: TargetSettings
    drafting: DraftingSettings
    depth: DepthPlan
    """How deep to speculate."""
    pools: tuple[str, ...]
    """Names of the draft pools that requests may ask for."""
    rule: AcceptanceRule = COUPLED_RULE
    """By which rule proposals are accepted."""
