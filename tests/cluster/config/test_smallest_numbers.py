"""Numbers so small that arithmetic breaks on them are refused before anything starts."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from outrider_cluster.gateway.scaling_settings import GatewayScaling
from outrider_cluster.gateway.settings import GatewaySettings
from outrider_draft.scaling_settings import PoolScaling
from outrider_target.control.settings import DepthSettings
from outrider_target.scaling_settings import TargetScaling


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        (TargetScaling, "target_token_latency_ms"),
        (TargetScaling, "target_kv_usage_ratio"),
        (TargetScaling, "target_occupancy_ratio"),
        (PoolScaling, "target_busy_ratio"),
        (GatewayScaling, "target_in_flight_ratio"),
        (DepthSettings, "token_latency_ms"),
        (DepthSettings, "probe_share"),
    ],
)
@pytest.mark.parametrize("number", [0.0, 1e-322])
def test_what_is_divided_by_has_a_lower_bound(settings: Any, name: str, number: float) -> None:
    with pytest.raises(ValidationError, match=f"{name}\n  Input should be greater than or equal to"):
        settings.model_validate({"max_replicas": 2, name: number} if settings is not DepthSettings else {name: number})


@pytest.mark.parametrize("key", ["", " x", "a b", "ü", "a\n", "\x7f"])
def test_a_key_that_no_client_can_send_as_it_is_is_refused(key: str) -> None:
    with pytest.raises(ValidationError, match="key 1 is empty, or holds anything but"):
        GatewaySettings.model_validate({"api_keys": ("fine", key)})


@pytest.mark.parametrize(
    "host", ["256.1.1.1", "1.2.3", "a host", "-x", "http://127.0.0.1", "127.0.0.1:80", "[::1]", 64 * "a"]
)
def test_a_host_that_cannot_be_bound_is_refused(host: str) -> None:
    with pytest.raises(ValidationError, match=r"http_host\n .*neither an IP address nor the name of a host"):
        GatewaySettings.model_validate({"http_host": host})


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "::1", 63 * "a", "localhost", "node_1.cluster.local.", "1a"])
def test_addresses_and_names_of_hosts_are_taken(host: str) -> None:
    assert GatewaySettings.model_validate({"http_host": host}).http_host == host


@pytest.mark.parametrize(("host", "words"), [("fe80::1%eth0", "has a zone"), ("a." * 127, "at most 253 characters")])
def test_a_host_with_a_zone_or_longer_than_a_name_may_be_is_refused(host: str, words: str) -> None:
    with pytest.raises(ValidationError, match=rf"http_host\n .*{words}"):
        GatewaySettings.model_validate({"http_host": host})
