"""`outrider deploy`: what is sent, what is waited for, and the one line that says why it failed."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
import yaml
from click.testing import Result
from outrider_doubles.repository import ROOT
from outrider_doubles.scripted_serve import ScriptedServe, application, serving
from typer.testing import CliRunner

from outrider_cluster.cli import rollout, serve_api
from outrider_cluster.cli import serving as serving_command
from outrider_cluster.cli.main import app

FILE = ROOT / "cluster.yaml"
TRACEBACK = """The deployment failed to start 3 times in a row. Error:
\x1b[36mray::ServeReplica:outrider:Target.initialize_and_get_metadata()\x1b[39m (pid=1, ip=10.0.0.1)
  File "replica.py", line 1867, in initialize
    await self._user_callable_wrapper.initialize_callable()
RuntimeError: Traceback (most recent call last):
  File "source.py", line 45, in resolve_source
    raise ModelRefused(f"{source}: no such folder")
outrider_runtime.errors.ModelRefused: /models/x: no such folder
"""
REFUSED_ARGS = """Deploying app 'outrider' failed with exception:
Traceback (most recent call last):
  File "api.py", line 386, in call_user_app_builder_with_args_if_necessary
pydantic_core._pydantic_core.ValidationError: 1 validation error for ClusterConfig
  Value error, target.max_num_seq: unknown key, got 3. Did you mean max_num_seqs? [type=value_error, input_value={}]
    For further information visit https://errors.pydantic.dev/2.14/v/value_error
"""


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rollout, "POLL_S", 0.0)


def deploy(script: ScriptedServe, *options: str, file: Path = FILE) -> Result:
    with serving(script):
        return CliRunner().invoke(app, ["deploy", str(file), "--address", script.url, *options])


def test_the_file_is_sent_as_it_is() -> None:
    script = ScriptedServe(states=[application("DEPLOYING")])
    assert deploy(script).exit_code == 0
    assert script.deployed == [yaml.safe_load(FILE.read_text(encoding="utf-8"))]


def test_waiting_ends_when_everything_runs_and_says_where() -> None:
    deploying = application("DEPLOYING", Target=("UPDATING", ""))
    script = ScriptedServe(states=[{}, deploying, deploying, application("RUNNING", Target=("HEALTHY", ""))])
    result = deploy(script, "--wait")
    assert result.exit_code == 0
    assert "http://127.0.0.1:8000/v1" in result.stdout
    assert result.stderr.splitlines() == [
        "Building the application",
        "Starting the application: all its deployments run",
    ]


@pytest.mark.parametrize(
    ("state", "cause"),
    [
        (
            application("DEPLOY_FAILED", "Failed to update.", Target=("DEPLOY_FAILED", TRACEBACK)),
            "Target: ModelRefused: /models/x: no such folder",
        ),
        (
            application("DEPLOY_FAILED", REFUSED_ARGS),
            "target.max_num_seq: unknown key, got 3. Did you mean max_num_seqs?",
        ),
        (application("DEPLOY_FAILED", "", Gateway=("DEPLOY_FAILED", "OSError: port taken")), "Gateway: OSError: port"),
        (application("DEPLOY_FAILED", ""), "DEPLOY_FAILED"),
        (
            application("DEPLOY_FAILED", "", Draft=("DEPLOY_FAILED", "ray.exceptions.RayError\n\nActorDiedError()")),
            "Draft: its process died as it started; its own log says more",
        ),
    ],
)
def test_a_failure_is_one_line_with_its_cause(state: dict[str, object], cause: str) -> None:
    result = deploy(ScriptedServe(states=[state]), "--wait")
    last = result.stderr.splitlines()[-1]
    assert result.exit_code == 1
    assert last.startswith(f"outrider: outrider failed to deploy: {cause}")
    assert "Traceback" not in result.stderr


def test_a_worker_that_is_lost_meanwhile_is_waited_for() -> None:
    """A draft worker that is killed while the rest starts once ended the whole server."""
    lost = application("UNHEALTHY", "", Draft=("UNHEALTHY", "A replica's health check failed."))
    result = deploy(ScriptedServe(states=[lost, lost, application("RUNNING", Draft=("HEALTHY", ""))]), "--wait")
    assert result.exit_code == 0, result.stderr
    assert "http://127.0.0.1:8000/v1" in result.stdout


def test_one_that_stays_away_is_named_in_the_end() -> None:
    lost = application("UNHEALTHY", "", Gateway=("UNHEALTHY", "OSError: port 8000 taken"))
    result = deploy(ScriptedServe(states=[lost]), "--wait", "--timeout-s", "1")
    assert result.exit_code == 1
    assert "not running after 1 s: Gateway: OSError: port 8000 taken" in result.stderr


def test_the_state_of_an_earlier_deployment_is_not_taken_for_the_new_one() -> None:
    old, new = application("RUNNING", at_s=1.0), application("DEPLOY_FAILED", "ValueError: new", at_s=2.0)
    result = deploy(ScriptedServe(before=old, states=[old, old, new]), "--wait")
    assert result.exit_code == 1
    assert "ValueError: new" in result.stderr


def test_a_deployment_that_finds_no_room_says_what_it_needs() -> None:
    message = (
        "Deployment 'Target' in application 'outrider' has 1 replicas that have taken more than 30s to be scheduled. "
        "This may be due to waiting for the cluster to auto-scale or for a runtime environment to be installed. "
        "Resources required for each replica: [{'CPU': 64.0}], total resources available: {'CPU': 2.0}. "
        "Use `ray status` for more details."
    )
    unplaced = application("DEPLOYING", Target=("UPDATING", message))
    unplaced["outrider"]["deployments"]["Target"]["replicas"] = []
    result = deploy(ScriptedServe(states=[unplaced, application("RUNNING", Target=("HEALTHY", ""))]), "--wait")
    told = "Starting Target 0/1 (no node has room: needs [{'CPU': 64.0}] for each replica; free in all: {'CPU': 2.0})"
    assert told in result.stderr, result.stderr


def test_waiting_has_an_end_and_says_what_serve_met_so_far() -> None:
    stuck = application("DEPLOYING", Target=("UPDATING", TRACEBACK))
    result = deploy(ScriptedServe(states=[stuck]), "--wait", "--timeout-s", "1")
    assert result.exit_code == 1
    assert "not running after 1 s: Target: ModelRefused: /models/x" in result.stderr


def test_a_file_with_faults_is_not_sent(tmp_path: Path) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(FILE.read_text(encoding="utf-8").replace("draft_pools", "draft_pool"), encoding="utf-8")
    script = ScriptedServe(states=[application("RUNNING")])
    result = deploy(script, "--wait", file=file)
    assert result.exit_code == 1
    assert "Did you mean draft_pools?" in result.stderr
    assert "nothing was started" in result.stderr.splitlines()[-1]
    assert script.deployed == []


def test_a_cluster_that_does_not_answer_is_named() -> None:
    result = CliRunner().invoke(app, ["deploy", str(FILE), "--address", "http://127.0.0.1:1"])
    assert result.exit_code == 1
    assert "no answer from http://127.0.0.1:1" in result.stderr


@pytest.mark.parametrize("command", ["deploy", "serve"])
def test_a_dashboard_that_is_up_and_stuck_is_called_slow(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert serve_api.FIRST_ANSWER_S <= 20
    for module in (rollout, serving_command):
        monkeypatch.setattr(module, "FIRST_ANSWER_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as stuck:
        url = f"http://127.0.0.1:{stuck.getsockname()[1]}"
        result = CliRunner().invoke(app, [command, str(FILE), "--address", url])
    assert result.exit_code == 1
    assert result.stderr == f"outrider: {url} answers too slowly: connected, but no answer in 0.2 s\n"


@pytest.mark.parametrize("address", ["localhost:8265", "nonsense", "ftp://x"])
def test_an_address_that_is_no_url_is_refused_with_an_example(address: str) -> None:
    result = CliRunner().invoke(app, ["deploy", str(FILE), "--address", address])
    assert result.exit_code == 1
    assert "http://127.0.0.1:8265" in result.stderr


def test_a_refusal_of_serve_is_shown() -> None:
    result = deploy(ScriptedServe(refusal="no such thing"))
    assert result.exit_code == 1
    assert "answers 400" in result.stderr
    assert "no such thing" in result.stderr


def test_rays_token_is_sent() -> None:
    script = ScriptedServe(states=[application("RUNNING")])
    deploy(script, "--token", "secret")
    assert script.tokens == ["Bearer secret"]


def test_serving_on_a_running_ray_does_not_replace_what_runs_there() -> None:
    script = ScriptedServe(before=application("RUNNING"))
    with serving(script):
        result = CliRunner().invoke(app, ["serve", str(FILE), "--address", script.url])
    assert result.exit_code == 1
    assert "runs outrider, which this would replace" in result.stderr
    assert script.deployed == []
    assert script.deleted == 0


def test_serving_on_a_running_ray_takes_a_failed_deployment_away_again() -> None:
    script = ScriptedServe(states=[application("DEPLOY_FAILED", "ValueError: no")])
    with serving(script):
        result = CliRunner().invoke(app, ["serve", str(FILE), "--address", script.url])
    assert result.exit_code == 1
    assert script.deleted == 1
