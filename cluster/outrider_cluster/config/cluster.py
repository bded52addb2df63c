"""The whole of `applications[].args`: one frozen object, checked as a whole before anything starts."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, SerializeAsAny, model_validator

from outrider_cluster.config.args_check import read_args
from outrider_cluster.config.network import NetworkSettings
from outrider_cluster.config.pools import parse_pool
from outrider_cluster.config.speculation import SpeculativeConfig
from outrider_cluster.controller.settings import ControllerSettings
from outrider_cluster.gateway.settings import GatewaySettings
from outrider_draft.config import PoolSettings
from outrider_runtime.settings import Settings
from outrider_target.acceptance_rule import AcceptanceRule
from outrider_target.control.depth_plan import DepthPlan
from outrider_target.drafting.settings import DraftingSettings
from outrider_target.settings import ModelSettings, TargetSettings


class ClusterConfig(Settings):
    """One model, the targets that serve it, and the draft pools that speed them up."""

    model: ModelSettings = ModelSettings()
    """What is served."""
    target: TargetSettings = TargetSettings()
    """The replicas that verify and generate."""
    speculative_config: SpeculativeConfig = SpeculativeConfig()
    """What holds for all draft pools. vLLM's object with a `method` is understood too, and becomes one pool."""
    draft_pools: tuple[SerializeAsAny[Annotated[PoolSettings, BeforeValidator(parse_pool)]], ...] = ()
    """Pools of draft workers; none serves without speculation."""
    drafting: DraftingSettings = DraftingSettings()
    """How targets treat draft workers."""
    controller: ControllerSettings = ControllerSettings()
    """The registry and the depth policy."""
    gateway: GatewaySettings = GatewaySettings()
    """The doors for clients."""
    network: NetworkSettings = NetworkSettings()
    """Where the processes reach each other."""

    @property
    def depth(self) -> DepthPlan:
        """How deep to speculate; not at all when there is no pool."""
        wanted = self.controller.depth
        most = self.speculative_config.num_speculative_tokens if isinstance(wanted, str) else wanted
        return DepthPlan(
            max_depth=most if self.draft_pools else 0,
            mode="dynamic" if wanted == "dynamic" else "static",
            dynamic=self.controller.dynamic,
            table=self.speculative_config.depth_table,
        )

    @property
    def acceptance_rule(self) -> AcceptanceRule:
        """By which rule targets accept proposals."""
        return self.speculative_config.acceptance_rule

    @property
    def pool_names(self) -> tuple[str, ...]:
        """Names of the draft pools, in order."""
        return tuple(pool.name for pool in self.draft_pools)

    @model_validator(mode="before")
    @classmethod
    def _judge(cls, value: Any) -> Any:
        """All faults at once, with path and nearest known key; and vLLM's object taken apart."""
        if isinstance(value, cls):
            return value
        args = read_args(value)
        if args.findings:
            raise ValueError("; ".join(str(finding) for finding in args.findings))
        return args.data
