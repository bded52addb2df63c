"""What `outrider serve` does: start, deploy, stay until interrupted, and take away what was started and only that."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from outrider_cluster.cli.addresses import address_lines
from outrider_cluster.cli.checked_file import load_checked
from outrider_cluster.cli.failure import CommandFailed, errors
from outrider_cluster.cli.free_ports import require_free
from outrider_cluster.cli.private_ray import PrivateRay
from outrider_cluster.cli.progress import ChangingLine
from outrider_cluster.cli.rollout import Rollout
from outrider_cluster.cli.serve_api import FIRST_ANSWER_S, ServeApi
from outrider_cluster.cli.signals import signals_ignored, signals_interrupt, wait_for_interruption
from outrider_cluster.config.cluster import ClusterConfig
from outrider_cluster.config.device_check import judge_device
from outrider_cluster.config.validate import Validated
from outrider_runtime.clock import SystemClock
from outrider_runtime.models.progress import choose_progress

_STOP_MARGIN_S = 30.0


def serve_here(file: Path, timeout_s: float) -> None:
    """Serve a file on a private Ray until interrupted.

    Raises:
        OutriderError: the file, its model, Ray or the deployment failed, or one of its ports is in use.
        Interrupted: before everything ran.
    """
    checked = load_checked(file, served_here=True)
    _require_devices(checked.configs)
    require_free(checked.listeners)
    with signals_interrupt():
        _fetch_models(checked.configs)
        errors.print("Starting a private Ray")
        with _said_to_end(), PrivateRay() as ray:
            try:
                _serve(ServeApi(ray.dashboard_url, ray.token), checked, timeout_s)
            except CommandFailed:
                errors.print(f"Logs are in {ray.log_folder}")
                raise


def serve_there(file: Path, api: ServeApi, timeout_s: float) -> None:
    """Serve a file on a running Ray until interrupted.

    Raises:
        OutriderError: the file or the deployment failed, or other applications run there.
        Interrupted: before everything ran.
    """
    checked = load_checked(file, served_here=False)
    others = ", ".join(app.name for app in api.applications(FIRST_ANSWER_S))
    if others:
        raise CommandFailed(f"{api.url} runs {others}, which this would replace; `outrider deploy` does that")
    with signals_interrupt(), _said_to_end():
        _serve(api, checked, timeout_s)


@contextmanager
def _said_to_end() -> Iterator[None]:
    """Say at the very end that nothing runs any more."""
    try:
        yield
    finally:
        errors.print("Stopped")


def _serve(api: ServeApi, checked: Validated, timeout_s: float) -> None:
    had_serve = api.is_serving()
    rollout = Rollout(api, checked.source.data, SystemClock())
    try:
        with ChangingLine(errors, SystemClock()) as line:
            rollout.start()
            rollout.wait(timeout_s, line.show)
        print("\n".join([*address_lines(checked.configs), "Ctrl-C stops it."]), flush=True)
        wait_for_interruption()
    finally:
        with signals_ignored():
            drain_s = _longest_drain_s(checked.configs)
            errors.print(f"Stopping … (requests in progress may finish for up to {drain_s:g} s)")
            _take_down(api, had_serve, drain_s)


def _take_down(api: ServeApi, had_serve: bool, drain_s: float) -> None:
    """Take the applications away, and Serve too unless it was there before."""
    try:
        if had_serve:
            api.deploy({"applications": []})
        else:
            api.shut_down(drain_s + _STOP_MARGIN_S)
    except CommandFailed as error:
        errors.print(f"outrider: not stopped in good order: {error}")


def _longest_drain_s(configs: Mapping[str, ClusterConfig]) -> float:
    return max((config.gateway.drain_s for config in configs.values()), default=0.0)


def _require_devices(configs: Mapping[str, ClusterConfig]) -> None:
    """A private Ray has this machine only, and would wait for ever for what it lacks."""
    for config in configs.values():
        for finding in judge_device(config.target):
            raise CommandFailed(str(finding))


def _fetch_models(configs: Mapping[str, ClusterConfig]) -> None:
    """Before anything starts, with a progress bar; the replicas find the files then."""
    from outrider_runtime.models.source import resolve_source

    progress = choose_progress(sys.stderr)
    for config in configs.values():
        model = config.model
        resolve_source(model.source, model.revision, model.cache_dir, progress=progress)
