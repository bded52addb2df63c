"""The Serve application. The only file that makes deployments.

    Gateway (ingress) ──► Controller, Target, Draft:<pool> …
    Target, Draft:<pool> ──► Controller

An arrow is a handle. Handles are for finding the controller: tokens go over gRPC, never through Serve.
"""
# No `from __future__ import annotations`: Serve looks at the class that annotates the builder's argument.

from typing import Any

from ray import serve
from ray.serve import Application

from outrider_cluster.config.cluster import ClusterConfig
from outrider_cluster.config.deployments import CONTROLLER, GATEWAY, TARGET, draft_deployment
from outrider_cluster.replicas.controller_replica import ControllerReplica
from outrider_cluster.replicas.draft_replica import GRACE_S, DraftReplica
from outrider_cluster.replicas.gateway_replica import GatewayReplica
from outrider_cluster.replicas.model_text import served_model
from outrider_cluster.replicas.target_host import TargetHost
from outrider_draft.config import PoolSettings

_SMALLEST_BUNDLE_CPUS = 0.001
"""Ray refuses placement groups of nothing, and a target that asks for no CPU shall fit anywhere."""
_STOP_MARGIN_S = 5.0
_SHUTDOWN_LOOP_S = 0.2


def build(args: ClusterConfig) -> Application:
    """The application for `ray serve deploy`: ``import_path: outrider_cluster.app:build``.

    Serve calls this before it touches what runs: a model that is not there, or has no usable tokenizer, fails the
    deployment here and leaves the running one alone.

    Raises:
        ModelRefused: the model cannot be had, or its tokenizer or template is of no use.
    """
    served_model(args.model, args.pool_names)
    controller = serve.deployment(**_controller_options())(ControllerReplica).bind(args.controller, args.network)
    target = serve.deployment(**_target_options(args))(TargetHost).bind(args, controller)
    drafts = [
        serve.deployment(**_draft_options(pool))(DraftReplica).bind(pool, args.model, args.network, controller)
        for pool in args.draft_pools
        if pool.replicas
    ]
    ingress = serve.ingress()(GatewayReplica)
    return serve.deployment(**_gateway_options(args))(ingress).bind(args, controller, target, *drafts)


def _controller_options() -> dict[str, Any]:
    return _options(CONTROLLER, replicas=1, threads=1, check_every_s=1.0, stop_within_s=_STOP_MARGIN_S)


def _target_options(config: ClusterConfig) -> dict[str, Any]:
    target = config.target
    options = _options(
        TARGET,
        replicas=target.replicas,
        threads=target.num_threads,
        cpus=target.num_cpus,
        check_every_s=1.0,
        stop_within_s=config.gateway.drain_s + _STOP_MARGIN_S,
    )
    bundle = {"CPU": max(target.num_cpus, _SMALLEST_BUNDLE_CPUS)}
    return options | {"placement_group_bundles": [bundle] * target.tensor_parallel_size}


def _draft_options(pool: PoolSettings) -> dict[str, Any]:
    return _options(
        draft_deployment(pool.name),
        replicas=pool.replicas,
        threads=1,
        cpus=pool.num_cpus,
        check_every_s=0.5,
        stop_within_s=GRACE_S + _STOP_MARGIN_S,
    )


def _gateway_options(config: ClusterConfig) -> dict[str, Any]:
    stop_within_s = config.gateway.drain_s + _STOP_MARGIN_S
    options = _options(GATEWAY, replicas=1, threads=1, check_every_s=1.0, stop_within_s=stop_within_s)
    return options | {"max_ongoing_requests": config.gateway.max_in_flight}


def _options(
    name: str, *, replicas: int, threads: int, check_every_s: float, stop_within_s: float, cpus: float = 0.0
) -> dict[str, Any]:
    """Serve options that all deployments share; a dead process is noticed within `check_every_s`."""
    return {
        "name": name,
        "num_replicas": replicas,
        "max_ongoing_requests": 100,
        "health_check_period_s": check_every_s,
        "health_check_timeout_s": 30.0,
        "graceful_shutdown_timeout_s": stop_within_s,
        "graceful_shutdown_wait_loop_s": _SHUTDOWN_LOOP_S,
        "ray_actor_options": {"num_cpus": cpus, "runtime_env": {"env_vars": _environment(threads)}},
    }


def _environment(threads: int) -> dict[str, str]:
    """Thread counts must stand before numeric libraries load; waiting threads must not spin on cores of others."""
    counts = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
    return {
        **dict.fromkeys(counts, str(threads)),
        "OMP_WAIT_POLICY": "PASSIVE",
        "TOKENIZERS_PARALLELISM": "false",
    }
