"""What Ray Serve says about applications, and the one line that tells why one failed. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_FAILED = "DEPLOY_FAILED"
_ERROR_LINE = re.compile(r"(?:[A-Za-z_]\w*\.)*([A-Z]\w+): (.+)")
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_MAX_CAUSE_CHARACTERS = 2000
_UNPLACED = re.compile(r"to be scheduled\..*each replica: (.*), total resources available: (.*?)\. Use", re.DOTALL)
_DIED = re.compile(r"\bActorDiedError\(\)$")
_HOW_IT_DIED = "its process died as it started; its own log says more"


@dataclass(frozen=True, slots=True)
class DeploymentState:
    """One deployment; `message` is Serve's, with tracebacks and all."""

    name: str
    status: str
    message: str
    running: int
    wanted: int

    def __str__(self) -> str:
        return f"{self.name} {self.running}/{self.wanted}"

    @property
    def waits_for(self) -> str | None:
        """The resources that no node has free, in words; None where all replicas have their place, or may soon."""
        found = _UNPLACED.search(self.message)
        return None if found is None else f"{found[1]} for each replica; free in all: {found[2]}"


@dataclass(frozen=True, slots=True)
class ApplicationState:
    """One application."""

    name: str
    status: str
    message: str
    deployed_unix_s: float
    deployments: tuple[DeploymentState, ...]

    @property
    def is_running(self) -> bool:
        """Every deployment runs."""
        return self.status == "RUNNING"

    @property
    def has_failed(self) -> bool:
        """Serve has given up. What is unhealthy has lost a replica, which Serve replaces."""
        return self.status == _FAILED

    def cause(self) -> str:
        """Why it failed, in one line."""
        failed = [deployment for deployment in self.deployments if deployment.status == _FAILED]
        causes = [f"{deployment.name}: {last_error(deployment.message)}" for deployment in failed if deployment.message]
        return "; ".join(causes) or last_error(self.message) or self.status


def read_applications(details: Mapping[str, Any]) -> tuple[ApplicationState, ...]:
    """Applications in the answer of Serve's REST API."""
    return tuple(_application(name, app) for name, app in details.get("applications", {}).items())


def last_error(message: str) -> str:
    """The error at the end of a traceback, without the traceback."""
    text = _COLOURS.sub("", message)
    refusal = re.search(r"Value error, (.*?) \[type=value_error", text, re.DOTALL)
    if refusal is not None:  # pydantic's frame around what our own checks say
        return " ".join(refusal[1].split())[:_MAX_CAUSE_CHARACTERS]
    lines = [line for line in text.splitlines() if line.strip()]
    if lines and _DIED.search(lines[-1].strip()):
        return _HOW_IT_DIED
    errors = [found for line in lines if (found := _ERROR_LINE.match(line)) is not None]
    if errors:
        return f"{errors[-1][1]}: {errors[-1][2].strip()}"[:_MAX_CAUSE_CHARACTERS]
    return lines[-1].strip()[:_MAX_CAUSE_CHARACTERS] if lines else ""


def _application(name: str, app: Mapping[str, Any]) -> ApplicationState:
    return ApplicationState(
        name=name,
        status=app["status"],
        message=app.get("message", ""),
        deployed_unix_s=float(app.get("last_deployed_time_s", 0.0)),
        deployments=tuple(_deployment(key, value) for key, value in app.get("deployments", {}).items()),
    )


def _deployment(name: str, deployment: Mapping[str, Any]) -> DeploymentState:
    replicas = deployment.get("replicas", ())
    return DeploymentState(
        name=name,
        status=deployment["status"],
        message=deployment.get("message", ""),
        running=sum(replica.get("state") == "RUNNING" for replica in replicas),
        wanted=int(deployment.get("target_num_replicas") or 0),
    )
