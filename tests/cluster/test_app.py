"""What Serve is told to deploy."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from outrider_doubles.taken_profile import taken_profile
from outrider_doubles.tiny_checkpoint import write_tiny_checkpoint

from outrider_cluster.config.cluster import ClusterConfig
from outrider_runtime.errors import InvalidConfig

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of pydantic, about how Serve defines its own settings
    from outrider_cluster.app import build

OPEN = {"max_replicas": 4}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write_tiny_checkpoint(tmp_path_factory.mktemp("tiny")))


def deployments(model: str, target: Any, gateway: Any, pool: Any) -> dict[str, Any]:
    """Serve's deployments by name."""
    pools = [{"name": "p", "method": "ngram", **pool}]
    args = {"model": {"source": model}, "target": target, "gateway": gateway, "draft_pools": pools}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of Serve, about how often a replica reports
        ingress = build(ClusterConfig.model_validate(args))._bound_deployment
    others = [argument._bound_deployment for argument in ingress.init_args if hasattr(argument, "_bound_deployment")]
    return {deployment.name: deployment for deployment in (ingress, *others)}


def test_fixed_numbers_are_fixed_and_nothing_reports(model: str) -> None:
    found = deployments(model, {"replicas": 2}, {}, {"replicas": 3})
    assert {name: one.num_replicas for name, one in found.items()} == {
        "Controller": 1, "Target": 2, "Gateway": 1, "Draft:p": 3,
    }  # fmt: skip
    assert all(one._deployment_config.autoscaling_config is None for one in found.values())
    assert "Draft:p" not in deployments(model, {}, {}, {"replicas": 0})


def test_open_numbers_follow_the_controller_which_stays_one(model: str) -> None:
    scaling = {"autoscaling": OPEN}
    found = deployments(model, scaling, scaling, {"autoscaling": {"min_replicas": 0, **OPEN}})
    configs = {name: one._deployment_config.autoscaling_config for name, one in found.items()}
    assert {name: (config.min_replicas, config.max_replicas) for name, config in configs.items()} == {
        "Controller": (1, 1), "Target": (1, 4), "Gateway": (1, 4), "Draft:p": (0, 4),
    }  # fmt: skip
    policies = {name: config.policy.policy_function.rpartition(":")[2] for name, config in configs.items()}
    assert policies == dict.fromkeys(("Target", "Gateway", "Draft:p"), "FollowController") | {
        "Controller": "PostDecisions"
    }


def test_step_costs_of_another_model_fail_the_building_which_touches_nothing(model: str, tmp_path: Path) -> None:
    taken = taken_profile(Path(model))
    args = {
        "model": {"source": model, "dtype": "float32"},
        "target": {"num_threads": 1},
        "draft_pools": [{"name": "p", "method": "ngram"}],
        "controller": {"depth": "dynamic", "dynamic": {"profile": str(tmp_path / "profile.json")}},
    }
    taken.save(tmp_path / "profile.json")
    build(ClusterConfig.model_validate(args))
    replace(taken, key=replace(taken.key, model="another")).save(tmp_path / "profile.json")
    with pytest.raises(InvalidConfig, match=r"controller\.dynamic\.profile: .* model is 'another'"):
        build(ClusterConfig.model_validate(args))


def test_deployments_keep_what_the_file_says_of_the_application(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"py_modules": ["local:///code"], "env_vars": {"PYTHONPATH": "/code", "OMP_NUM_THREADS": "99"}}
    monkeypatch.setattr("ray.is_initialized", lambda: True)
    monkeypatch.setattr("ray.get_runtime_context", lambda: SimpleNamespace(runtime_env=given))
    for one in deployments(model, {"num_threads": 3}, {}, {}).values():
        found = one.ray_actor_options["runtime_env"]
        assert (found["py_modules"], found["env_vars"]["PYTHONPATH"]) == (["local:///code"], "/code")
        assert found["env_vars"]["OMP_NUM_THREADS"] == ("3" if one.name == "Target" else "1")


def test_gateways_with_ports_of_their_own_need_nodes_of_their_own(model: str) -> None:
    free = {"http_port": 0, "grpc_port": 0}
    assert deployments(model, {}, {"autoscaling": OPEN}, {})["Gateway"]._replica_config.max_replicas_per_node == 1
    alone = deployments(model, {}, {"autoscaling": OPEN, **free}, {})["Gateway"]
    assert alone._replica_config.max_replicas_per_node is None
