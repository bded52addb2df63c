"""The metrics that the documents name are exported, and those that vLLM's dashboards need are among them."""

from __future__ import annotations

import re

import pytest
from outrider_doubles.repository import ROOT
from prometheus_client import CollectorRegistry

from outrider_cluster.controller.loss_metrics import LossMetrics
from outrider_cluster.controller.losses import Losses
from outrider_cluster.gateway.gateway_metrics import GatewayMetrics
from outrider_cluster.scaling.metrics import ScalingMetrics
from outrider_draft.metrics import DraftMetrics
from outrider_runtime.clock import ManualClock
from outrider_target.drafting.metrics import DraftingMetrics
from outrider_target.engine_metrics import EngineMetrics

NAME = re.compile(r"\b(?:vllm:|outrider_)[a-z0-9_]++(?![./])")
SUFFIXES = {"counter": ("_total",), "gauge": ("",), "histogram": ("_bucket", "_sum", "_count")}


@pytest.fixture
def exported() -> set[str]:
    registry = CollectorRegistry()
    EngineMetrics(registry, "model")
    DraftingMetrics(registry)
    GatewayMetrics(registry, "model", ManualClock())
    DraftMetrics(registry, "pool")
    ScalingMetrics(registry)
    LossMetrics(registry, Losses(ManualClock()))
    return {metric.name + suffix for metric in registry.collect() for suffix in SUFFIXES[metric.type]}


def test_every_metric_that_the_operations_page_names_is_exported(exported: set[str]) -> None:
    named = set(NAME.findall((ROOT / "docs" / "operations.md").read_text("utf-8")))
    assert len(named) > 10
    assert named - exported == set()


def test_names_of_different_processes_do_not_collide(exported: set[str]) -> None:
    # One registry took them all in without an error, so each name has one meaning in the cluster-wide sum.
    assert {"vllm:spec_decode_num_drafts_total", "vllm:num_requests_running"} <= exported
