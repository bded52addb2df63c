"""Serve's policies: they do what was decided, and keep what there is when they cannot know it."""

from __future__ import annotations

import itertools
import warnings
from types import SimpleNamespace
from typing import Any

import pytest

from outrider_cluster.scaling import board
from outrider_cluster.scaling.serve_options import controller_options, replica_options
from outrider_cluster.scaling.serve_policy import FollowController, PostDecisions
from outrider_draft.scaling_settings import PoolScaling

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of pydantic, about how Serve defines its own settings
    from ray.serve.config import AutoscalingConfig, AutoscalingPolicy

APPLICATIONS = itertools.count()
PLAN: Any = [object()]


class Serve:
    """What Serve's controller hands to the policies of one application."""

    def __init__(self) -> None:
        self.application = f"app-{next(APPLICATIONS)}"
        self.now_s = 100.0
        self.post = PostDecisions(lambda: self.now_s)
        self.follow = FollowController(lambda: self.now_s)

    def context(self, deployment: str, target: int, reports: Any = None) -> Any:
        return SimpleNamespace(
            app_name=self.application, deployment_name=deployment, target_num_replicas=target, raw_metrics=reports
        )

    def report(self, replicas: float, at_s: float) -> None:
        series = [SimpleNamespace(timestamp=at_s - 1, value=9.0), SimpleNamespace(timestamp=at_s, value=replicas)]
        reports = {"desired:Draft:p": {"one": series, "new": []}, "running_requests": {"one": series}}
        assert self.post(self.context("Controller", 1, reports)) == (1, {})

    def followed(self, target: int = 3) -> int:
        replicas, state = self.follow(self.context("Draft:p", target))
        assert state == {}
        return replicas


def test_a_deployment_gets_what_was_decided() -> None:
    serve = Serve()
    assert serve.followed() == 3
    serve.report(5.0, at_s=1)
    assert serve.followed() == 5
    serve.report(0.0, at_s=2)
    assert serve.followed() == 0


def test_applications_do_not_mix() -> None:
    one, other = Serve(), Serve()
    one.report(5.0, at_s=1)
    assert other.followed() == 3


def test_old_decisions_are_not_followed_even_if_their_report_is_seen_again() -> None:
    serve = Serve()
    serve.report(5.0, at_s=1)
    serve.now_s += board.MAX_AGE_S + 1
    serve.report(5.0, at_s=1)
    assert serve.followed() == 3
    serve.report(5.0, at_s=0.5)  # of a successor whose clock is behind
    assert serve.followed() == 5


def test_no_fault_reaches_serve_and_the_number_stays(caplog: pytest.LogCaptureFixture) -> None:
    serve = Serve()
    with caplog.at_level("INFO", "ray.serve"):
        assert serve.post(serve.context("Controller", 1, {"desired:Target": 3})) == (1, {})
        serve.follow = FollowController(lambda: 1 / 0)  # type: ignore[arg-type]
        assert serve.followed() == 3


def test_the_policies_that_serve_makes_share_what_was_decided() -> None:
    names = [f"outrider_cluster.scaling.serve_policy:{name}" for name in ("PostDecisions", "FollowController")]
    post, follow = (AutoscalingPolicy(policy_function=name).get_policy()() for name in names)
    serve = Serve()
    reports = {"desired:Draft:p": {"one": [SimpleNamespace(timestamp=1.0, value=7.0)]}}
    post(serve.context("Controller", 1, reports))
    assert follow(serve.context("Draft:p", 3)) == (7, {})


def test_serve_takes_our_bounds_and_adds_no_delay() -> None:
    bounds = PoolScaling(min_replicas=0, max_replicas=5)
    config = AutoscalingConfig(**replica_options(1, bounds)["autoscaling_config"])
    assert (config.min_replicas, config.max_replicas) == (0, 5)
    assert config.upscale_delay_s == config.downscale_delay_s == 0
    assert replica_options(3, None) == {"num_replicas": 3}


def test_the_controller_stays_one_and_reports_only_if_it_decides() -> None:
    assert controller_options([]) == {"num_replicas": 1}
    config = controller_options(PLAN)["autoscaling_config"]
    assert (config["min_replicas"], config["max_replicas"]) == (1, 1)
    with pytest.warns(DeprecationWarning, match="metrics_interval_s"):
        AutoscalingConfig(**config)
