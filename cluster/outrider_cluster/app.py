"""The Serve application. The only file that makes deployments.

    Gateway (ingress) ──► Controller, Target, Draft:<pool> …
    Target, Draft:<pool> ──► Controller

An arrow is a handle. Handles are for finding the controller: tokens go over gRPC, never through Serve.
"""
# No `from __future__ import annotations`: Serve looks at the class that annotates the builder's argument.

from collections.abc import Sequence
from typing import Any

import ray
from ray import serve
from ray.serve import Application

from outrider_cluster.config.cluster import ClusterConfig
from outrider_cluster.config.deployments import CONTROLLER, GATEWAY, TARGET, draft_deployment
from outrider_cluster.config.profile_check import check_profile
from outrider_cluster.replicas.controller_replica import ControllerReplica
from outrider_cluster.replicas.draft_replica import GRACE_S, DraftReplica
from outrider_cluster.replicas.gateway_replica import GatewayReplica
from outrider_cluster.replicas.model_text import served_model
from outrider_cluster.replicas.target_host import TargetHost
from outrider_cluster.scaling.plan import Scaled, scaling_plan
from outrider_cluster.scaling.serve_options import controller_options, replica_options
from outrider_draft.config import PoolSettings

_SMALLEST_BUNDLE_CPUS = 0.001
"""Ray refuses placement groups of nothing, and a target that asks for no CPU shall fit anywhere."""
_STOP_MARGIN_S = 5.0
_SHUTDOWN_LOOP_S = 0.2


def build(args: ClusterConfig) -> Application:
    """The application for `ray serve deploy`: ``import_path: outrider_cluster.app:build``.

    Serve calls this before it touches what runs: a model that is not there, or has no usable tokenizer, or step costs
    that were taken elsewhere fail the deployment here and leave the running one alone.

    Raises:
        ModelRefused: the model cannot be had, or its tokenizer or template is of no use.
        InvalidConfig: the file of step costs cannot be read, or was taken for another model or other hardware.
    """
    served_model(args.model, args.pool_names)
    if args.controller.dynamic.profile is not None:
        check_profile(args, serves_here=_is_only_node())
    plan = scaling_plan(args)
    controller = serve.deployment(**_controller_options(plan))(ControllerReplica).bind(
        args.controller, args.network, plan
    )
    target = serve.deployment(**_target_options(args))(TargetHost).bind(args, controller)
    drafts = [
        serve.deployment(**_draft_options(pool))(DraftReplica).bind(pool, args.model, args.network, controller)
        for pool in args.draft_pools
        if pool.replicas or pool.autoscaling
    ]
    ingress = serve.ingress()(GatewayReplica)
    return serve.deployment(**_gateway_options(args))(ingress).bind(args, controller, target, *drafts)


def _is_only_node() -> bool:
    """Whether targets can run nowhere but on this machine."""
    return not ray.is_initialized() or sum(node["Alive"] for node in ray.nodes()) == 1


def _controller_options(plan: Sequence[Scaled]) -> dict[str, Any]:
    return _options(CONTROLLER, threads=1, check_every_s=1.0, stop_within_s=_STOP_MARGIN_S) | controller_options(plan)


def _target_options(config: ClusterConfig) -> dict[str, Any]:
    target = config.target
    options = _options(
        TARGET,
        threads=target.num_threads,
        cpus=target.num_cpus,
        check_every_s=1.0,
        stop_within_s=config.gateway.drain_s + _STOP_MARGIN_S,
    )
    options["ray_actor_options"]["num_gpus"] = target.num_gpus
    bundle: dict[str, float] = {"CPU": max(target.num_cpus, _SMALLEST_BUNDLE_CPUS)}
    if target.num_gpus:
        bundle["GPU"] = target.num_gpus
    replicas = replica_options(target.replicas, target.autoscaling)
    return options | replicas | {"placement_group_bundles": [bundle] * target.tensor_parallel_size}


def _draft_options(pool: PoolSettings) -> dict[str, Any]:
    options = _options(
        draft_deployment(pool.name),
        threads=1,
        cpus=pool.num_cpus,
        check_every_s=0.5,
        stop_within_s=GRACE_S + _STOP_MARGIN_S,
    )
    return options | replica_options(pool.replicas, pool.autoscaling)


def _gateway_options(config: ClusterConfig) -> dict[str, Any]:
    stop_within_s = config.gateway.drain_s + _STOP_MARGIN_S
    options = _options(GATEWAY, threads=1, check_every_s=1.0, stop_within_s=stop_within_s)
    options |= {"max_ongoing_requests": config.gateway.max_in_flight}
    if config.gateway.autoscaling is not None and (config.gateway.http_port or config.gateway.grpc_port):
        options["max_replicas_per_node"] = 1  # its ports can be had once on each node
    return options | replica_options(1, config.gateway.autoscaling)


def _options(
    name: str, *, threads: int, check_every_s: float, stop_within_s: float, cpus: float = 0.0
) -> dict[str, Any]:
    """Serve options that all deployments share; a dead process is noticed within `check_every_s`."""
    return {
        "name": name,
        "max_ongoing_requests": 100,
        "health_check_period_s": check_every_s,
        "health_check_timeout_s": 30.0,
        "graceful_shutdown_timeout_s": stop_within_s,
        "graceful_shutdown_wait_loop_s": _SHUTDOWN_LOOP_S,
        "ray_actor_options": {"num_cpus": cpus, "runtime_env": _runtime_env(threads)},
    }


def _runtime_env(threads: int) -> dict[str, Any]:
    """What the file says of the application, and our variables.

    Serve builds the application within that `runtime_env`. To deployments that have one it hands on nothing of it but
    `working_dir`: variables and modules of the user's would be lost.
    """
    given = dict(ray.get_runtime_context().runtime_env) if ray.is_initialized() else {}
    return {**given, "env_vars": {**given.get("env_vars", {}), **_environment(threads)}}


def _environment(threads: int) -> dict[str, str]:
    """Thread counts must stand before numeric libraries load; waiting threads must not spin on cores of others."""
    counts = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
    return {
        **dict.fromkeys(counts, str(threads)),
        "OMP_WAIT_POLICY": "PASSIVE",
        "TOKENIZERS_PARALLELISM": "false",
    }
