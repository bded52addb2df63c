"""Our table of Serve's keys is that of the installed Serve, asked in a process of its own: it warns at import."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from outrider_doubles.repository import ROOT
from pydantic import BaseModel

from outrider_cluster.config import serve_schema as ours
from outrider_cluster.config.code_place import SCHEMES, check_code_uri

CODE_PLACES = [
    *(f"{scheme}://host/code.zip" for scheme in SCHEMES if scheme != "local"),
    "local:///srv/code", "LOCAL:///srv/code", "local://code", "local:/srv/code", "local:code", "local://",
    "local:///srv/code.zip", "local:///srv/code.tar.gz", "local:///srv/code.ZIP", "local:///srv/code.tar.bz2",
    "/srv/code", "./code", "code", "", "ftp://host/code.zip", "git+https://host/code", "http://[::1/code.zip",
]  # fmt: skip

ASK = """
import json, sys, yaml
def taken(place):
    try:
        schema.RayActorOptionsSchema(runtime_env={"working_dir": place, "py_modules": [place]})
    except ValueError:
        return False
    return True
from ray.runtime_env import RuntimeEnv
from ray.serve import config, schema
names = json.loads(sys.argv[1])
models = {name: getattr(schema, name, None) or getattr(config, name) for name in names}
file = schema.ServeDeploySchema.model_validate(yaml.safe_load(open(sys.argv[2])))
answer = {
    "keys": {name: list(model.model_fields) for name, model in models.items()},
    "ports": {name: models[name].model_fields["port"].default for name in ("HTTPOptionsSchema", "gRPCOptionsSchema")},
    "runtime_env": sorted(RuntimeEnv.known_fields),
    "import_path": file.applications[0].import_path,
    "code_places": [taken(place) for place in json.loads(sys.argv[3])],
}
print(json.dumps(answer))
"""

PAIRS: dict[str, type[BaseModel]] = {
    "ServeDeploySchema": ours.ServeFile,
    "HTTPOptionsSchema": ours.HttpOptions,
    "gRPCOptionsSchema": ours.GrpcOptions,
    "LoggingConfig": ours.LoggingConfig,
    "TracingConfig": ours.TracingConfig,
    "ControllerOptions": ours.ControllerOptions,
    "ServeApplicationSchema": ours.Application,
    "DeploymentSchema": ours.Deployment,
    "RayActorOptionsSchema": ours.RayActorOptions,
    "AutoscalingConfig": ours.AutoscalingConfig,
    "AutoscalingPolicy": ours.AutoscalingPolicy,
    "BackpressureConfig": ours.BackpressureConfig,
    "RequestRouterConfig": ours.RequestRouterConfig,
    "GangSchedulingConfig": ours.GangSchedulingConfig,
    "DeploymentActorConfig": ours.DeploymentActorConfig,
}
REFUSED_BY_SERVE = {"ServeApplicationSchema": {"host", "port"}}
"""Keys for the old form of files, with one application, which Serve refuses in the form that we validate."""


@pytest.fixture(scope="module")
def installed() -> dict[str, Any]:
    command = [sys.executable, "-c", ASK, json.dumps(list(PAIRS)), str(ROOT / "cluster.yaml"), json.dumps(CODE_PLACES)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


@pytest.mark.parametrize("name", PAIRS)
def test_keys_are_those_of_the_installed_serve(installed: dict[str, Any], name: str) -> None:
    public = {key for key in installed["keys"][name] if not key.startswith("_")}
    assert set(PAIRS[name].model_fields) == public - REFUSED_BY_SERVE.get(name, set())


@pytest.mark.parametrize("name", ["HTTPOptionsSchema", "gRPCOptionsSchema"])
def test_default_ports_are_those_of_the_installed_serve(installed: dict[str, Any], name: str) -> None:
    assert PAIRS[name].model_fields["port"].default == installed["ports"][name]


def test_keys_of_a_runtime_env_are_those_of_the_installed_ray(installed: dict[str, Any]) -> None:
    public = {name for name in installed["runtime_env"] if not name.startswith("_")}
    assert set(ours.RuntimeEnvKeys.model_fields) == public


def test_code_is_refused_where_the_installed_serve_refuses_it(installed: dict[str, Any]) -> None:
    assert dict(zip(CODE_PLACES, map(_is_taken, CODE_PLACES), strict=True)) == dict(
        zip(CODE_PLACES, installed["code_places"], strict=True)
    )


def _is_taken(place: str) -> bool:
    try:
        check_code_uri(place)
    except ValueError:
        return False
    return True


def test_serve_takes_the_file_in_the_repository(installed: dict[str, Any]) -> None:
    assert installed["import_path"] == "outrider_cluster.app:build"
