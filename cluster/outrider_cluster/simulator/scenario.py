"""A scenario: everything that a simulation is told. Frozen, strict, checked as a whole."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from outrider_cluster.simulator.failure import Failure
from outrider_cluster.simulator.gateway_settings import Gateways, check_start
from outrider_cluster.simulator.traffic import Share, Traffic
from outrider_draft.scaling_settings import PoolScaling
from outrider_runtime.settings import Settings
from outrider_target.control.depth_plan import DepthPlan
from outrider_target.control.settings import DepthSettings
from outrider_target.control.table_policy import parse_table
from outrider_target.drafting.settings import DraftingSettings
from outrider_target.scaling_settings import TargetScaling

MAX_DEPTH = 64
"""Deepest proposal that a scenario can ask for."""
_LIVE = DraftingSettings()


class StepTime(Settings):
    """Time of one step of a target: base + tokens + rows + context. A profile replaces all of it."""

    base_ms: float = Field(default=25.0, gt=0)
    """Reading the weights: what a step takes whatever is in it."""
    token_ms: float = Field(default=0.0, ge=0)
    """For each token that goes through the forward pass."""
    row_ms: float = Field(default=0.0, ge=0)
    """For each sequence in the step."""
    context_token_us: float = Field(default=0.0, ge=0)
    """For each cached token that attention reads, in microseconds."""
    compute_bound_from_tokens: int | None = Field(default=None, ge=1)
    """Tokens up to which a step costs no more than its base (`token_ms` counts beyond them)."""
    jitter: float = Field(default=0.0, ge=0, le=2)
    """Standard deviation of the logarithm of a step's time; its mean stays."""


class Targets(Settings):
    """Target replicas; all alike."""

    count: int = Field(default=1, ge=1, le=100_000)
    """With `autoscaling`, how many there are at the start."""
    max_num_seqs: int = Field(default=32, ge=1, le=4096)
    max_num_batched_tokens: int = Field(default=2048, ge=16)
    kv_cache_tokens: int = Field(default=262_144, ge=128)
    step: StepTime = StepTime()
    profile: str | None = None
    """JSON file with step times, relative to the scenario's folder: as a server keeps them under `profiles` in the
    folder of models, or a cost model (`knots`, `knot_s`, ...) as `outrider tune` writes it."""
    autoscaling: TargetScaling | None = None
    """As many targets as the load calls for, within bounds."""
    start_up_s: float = Field(default=30.0, ge=0)
    """From the decision for another target until it serves."""
    drain_s: float = Field(default=30.0, ge=0)
    """How long a target that is too many may finish its requests; what is left then goes on elsewhere."""

    @model_validator(mode="after")
    def _check(self) -> Targets:
        check_start("count", self.count, self.autoscaling)
        return self


class DraftTime(Settings):
    """Time of one batch of drafts: base + rows x (row + tokens x token)."""

    base_ms: float = Field(default=0.0, ge=0)
    token_ms: float = Field(default=0.0, ge=0)
    """For each position of a batch, however many rows it has: one forward of a draft model."""
    row_ms: float = Field(default=0.0, ge=0)
    """For each row of a batch."""


class DraftPool(Settings):
    """Draft workers of one kind."""

    name: str = Field(min_length=1, max_length=64)
    workers: int = Field(default=1, ge=0, le=1_000_000)
    """With `autoscaling`, how many there are at the start; without, at least one."""
    acceptance: tuple[Share, ...] = Field(default=(0.7,), min_length=1, max_length=64)
    """Share accepted at each position, given that all before it were; the last one goes on for deeper positions."""
    coverage: Share = 1.0
    """Share of asks that get any proposal; an n-gram worker often has none."""
    time: DraftTime = DraftTime()
    answers: Literal["after_commit", "run_ahead", "pull_table", "push_table"] = "after_commit"
    """When drafting happens. `after_commit` is what the cluster does today: each commitment asks for the next chain.
    The others draft during verification: one chain that bets on full acceptance, or a table of outcomes that the draft
    worker keeps (`pull_table`) or sends ahead (`push_table`)."""
    table_hit_after_rejection: Share = 0.0
    """Probability that the table holds the target's own token after a rejection."""
    table_hit_after_acceptance: Share = 0.0
    """The same after a fully accepted proposal, and after a step without one."""
    table_time: DraftTime | None = None
    """Time of a table where it differs from a chain's."""
    colocated: bool = False
    """Drafts within the target's own step: no network, no other worker, and the step takes longer."""
    autoscaling: PoolScaling | None = None
    """As many workers as the load calls for, within bounds."""
    start_up_s: float = Field(default=5.0, ge=0)
    """From the decision for another worker until it serves."""

    @model_validator(mode="after")
    def _check(self) -> DraftPool:
        check_start("workers", self.workers, self.autoscaling)
        if self.autoscaling is not None and self.colocated:
            raise ValueError("a colocated pool has no workers of its own: leave autoscaling out")
        if self.autoscaling is None and not self.workers:
            raise ValueError("workers 0: nobody would ever draft; give at least 1, or autoscaling with min_replicas 0")
        return self


class Network(Settings):
    """Between targets and draft workers, and between gateways and targets."""

    round_trip_ms: float = Field(default=0.5, ge=0)
    """Effective: serialising and waking up included."""
    jitter: float = Field(default=0.0, ge=0, le=3)
    """Standard deviation of the logarithm of a delay; its mean stays."""
    loss: float = Field(default=0.0, ge=0, lt=1)
    """Share of frames whose packets are lost and sent again."""
    retransmit_ms: float = Field(default=200.0, ge=0)
    """What a loss costs: streams are TCP, nothing is lost for good."""
    gateway_ms: float = Field(default=0.0, ge=0)
    """From a client through a gateway to the target's queue."""


class Control(Settings):
    """What decides how deep to speculate, and how long to wait."""

    depth: Literal["static", "table", "dynamic"] = "dynamic"
    num_speculative_tokens: int = Field(default=4, ge=0, le=MAX_DEPTH)
    num_speculative_tokens_per_batch_size: tuple[tuple[int, int, int], ...] | None = None
    dynamic: DepthSettings = DepthSettings()
    """Of `depth: dynamic`, as under `controller` of a cluster file. `profile` is what the policy believes that steps
    cost; without it, it knows what they do cost."""
    wait: Literal["rule", "always", "never"] = "rule"
    """For missing drafts: as the cluster does, until they are there, or not at all."""
    draft_deadline_ms: float = Field(default=_LIVE.draft_deadline_ms, gt=0)
    breaker_misses: int = Field(default=_LIVE.breaker_misses, ge=1)
    drafting_price: float = Field(default=_LIVE.drafting_price, ge=0, le=1_000)
    """Seconds of the target that a second of drafting is worth: a pool that brings less is not asked. 0 asks all."""
    explore_rounds: int = Field(default=_LIVE.explore_rounds, ge=1)
    """A pool that is not worth its time is asked again after this many rounds of a request."""
    explore_share: float = Field(default=_LIVE.explore_share, gt=0, le=1)
    """As `drafting.explore_share`."""

    @model_validator(mode="after")
    def _check(self) -> Control:
        has_table = self.num_speculative_tokens_per_batch_size is not None
        if has_table != (self.depth == "table"):
            raise ValueError("num_speculative_tokens_per_batch_size goes with depth: table, and only with it")
        return self

    @property
    def plan(self) -> DepthPlan:
        """The same as a target is told.

        Raises:
            InvalidConfig: the table is wrong.
        """
        table = self.num_speculative_tokens_per_batch_size
        return DepthPlan(
            max_depth=self.num_speculative_tokens,
            mode="dynamic" if self.depth == "dynamic" else "static",
            dynamic=self.dynamic,
            table=() if table is None else parse_table(table),
        )


class Scenario(Settings):
    """A cluster, its traffic and its bad luck."""

    name: str = "simulation"
    seed: int = Field(default=0, ge=0, lt=1 << 53)
    duration_s: float = Field(gt=0, le=31 * 86400)
    warm_up_s: float = Field(default=0.0, ge=0)
    """Not counted in the figures."""
    traffic: Traffic
    gateways: Gateways | None = None
    """None: no gateway; every request goes to the target that has the fewest at that moment."""
    targets: Targets = Targets()
    draft_pools: tuple[DraftPool, ...] = Field(default=(), max_length=16)
    network: Network = Network()
    control: Control = Control()
    failures: tuple[Failure, ...] = ()

    @model_validator(mode="after")
    def _check(self) -> Scenario:
        names = [pool.name for pool in self.draft_pools]
        if len(set(names)) < len(names):
            raise ValueError("draft_pools: two have the same name")
        if reserved := sorted({"targets", "gateways"} & set(names)):
            raise ValueError(f"draft_pools: {reserved[0]} cannot be the name of a pool; failures use it")
        if self.warm_up_s >= self.duration_s:
            raise ValueError(f"warm_up_s {self.warm_up_s:g} leaves nothing of duration_s {self.duration_s:g}")
        for kind in self.traffic.kinds:
            self._check_class(kind.name, kind.latency_class)
            self._known(kind.acceptance, f"traffic.kinds: {kind.name}: acceptance")
            self._known(kind.coverage, f"traffic.kinds: {kind.name}: coverage")
        others = {"targets"} if self.gateways is None else {"targets", "gateways"}
        self._known([f.what for f in self.failures if f.what not in others], "failures: what")
        return self

    def _check_class(self, kind: str, latency_class: str | None) -> None:
        classes = list(self.control.dynamic.latency_classes)
        if latency_class is not None and latency_class not in classes:
            where = f"traffic.kinds: {kind}: latency_class: there is no class {latency_class}"
            raise ValueError(f"{where}; control.dynamic.latency_classes: {', '.join(classes) or 'none'}")

    def _known(self, pools: object, where: str) -> None:
        names = [pool.name for pool in self.draft_pools]
        unknown = sorted(set(pools) - set(names))  # type: ignore[call-overload]
        if unknown:
            raise ValueError(f"{where}: there is no pool {', '.join(unknown)}; pools: {', '.join(names) or 'none'}")
