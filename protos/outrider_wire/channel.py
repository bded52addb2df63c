"""Channels between our processes: bounded messages, keepalive that notices a stopped peer, one connection per pair."""

from __future__ import annotations

import grpc

MAX_MESSAGE_BYTES = 8 << 20
KEEPALIVE_TIME_MS = 2_000
PING_TIMEOUT_MS = 4_000
"""A peer that is only starved of processor time for a moment must not count as gone: its calls would break."""

_CLIENT_OPTIONS = (
    ("grpc.keepalive_time_ms", KEEPALIVE_TIME_MS),
    ("grpc.keepalive_timeout_ms", PING_TIMEOUT_MS),
    # Without it a stopped peer goes unnoticed for the better part of a minute.
    ("grpc.http2.ping_timeout_ms", PING_TIMEOUT_MS),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    # Channels to one address share a connection otherwise, and a slow reader would hold up everybody behind it.
    ("grpc.use_local_subchannel_pool", 1),
    # What an environment says about proxies is meant for the world outside, not for the links between our processes.
    ("grpc.enable_http_proxy", 0),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 2_000),
)


def open_channel(address: str) -> grpc.aio.Channel:
    """A channel to host:port. Opening never fails; calls do, when nobody listens."""
    return grpc.aio.insecure_channel(address, options=_CLIENT_OPTIONS)
