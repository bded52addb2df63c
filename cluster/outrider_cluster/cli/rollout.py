"""Deploys a file and follows it until it runs, fails, or takes too long."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from outrider_cluster.cli.failure import CommandFailed
from outrider_cluster.cli.serve_api import FIRST_ANSWER_S, ServeApi
from outrider_cluster.cli.serve_state import ApplicationState, DeploymentState, last_error
from outrider_cluster.config.deployments import TARGET
from outrider_runtime.clock import Clock

POLL_S = 0.5

_OF_TARGET = " (loads and probes the model, at the first start compiles its kernels)"


class Rollout:
    """One deployment of one file.

    Args:
        api: the cluster.
        config: what the file says.
        clock: measures how long it takes.
        pause: waits for so many seconds between two looks.
    """

    def __init__(
        self, api: ServeApi, config: Mapping[str, Any], clock: Clock, pause: Callable[[float], None] = time.sleep
    ) -> None:
        self._api = api
        self._config = config
        self._clock = clock
        self._pause = pause
        self._before: dict[str, float] = {}

    def start(self) -> None:
        """Send the file, if the cluster answers at all.

        Raises:
            CommandFailed: the cluster cannot be reached, or does not take it.
        """
        self._before = {app.name: app.deployed_unix_s for app in self._api.applications(FIRST_ANSWER_S)}
        self._api.deploy(self._config)

    def wait(self, timeout_s: float, show: Callable[[str], None]) -> None:
        """Return when all applications of the file run.

        Args:
            timeout_s: longest wait.
            show: told about the progress, again and again.

        Raises:
            CommandFailed: one failed, with its cause; or it took longer.
        """
        wanted = {app.get("name", "default") for app in self._config["applications"]}
        end_s = self._clock.now_s() + timeout_s
        while True:
            # Until Serve has taken the file in, it reports the state of what was there before.
            apps = [app for app in self._api.applications() if app.name in wanted and self._is_new(app)]
            show(describe(apps))
            for app in apps:
                if app.has_failed:
                    raise CommandFailed(f"{app.name} failed to deploy: {app.cause()}")
            if len(apps) == len(wanted) and all(app.is_running for app in apps):
                return
            if self._clock.now_s() > end_s:
                raise CommandFailed(f"not running after {timeout_s:g} s: {_troubles(apps) or describe(apps)}")
            self._pause(POLL_S)

    def _is_new(self, app: ApplicationState) -> bool:
        return app.deployed_unix_s > self._before.get(app.name, 0.0)


def describe(apps: list[ApplicationState]) -> str:
    """How far applications are, in one line: what is not there yet."""
    deployments = [deployment for app in apps for deployment in app.deployments]
    if not deployments:
        return "Building the application"
    missing = [deployment for deployment in deployments if deployment.running < deployment.wanted]
    return "Starting " + (", ".join(map(_progress, missing)) or "the application: all its deployments run")


def _progress(deployment: DeploymentState) -> str:
    if deployment.waits_for is not None:
        return f"{deployment} (no node has room: needs {deployment.waits_for})"
    return f"{deployment}{_OF_TARGET if deployment.name == TARGET else ''}"


def _troubles(apps: list[ApplicationState]) -> str:
    """What Serve has met so far and tries again."""
    deployments = [deployment for app in apps for deployment in app.deployments if deployment.message]
    return "; ".join(f"{deployment.name}: {last_error(deployment.message)}" for deployment in deployments)
