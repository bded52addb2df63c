"""Settings of one gateway: where it listens, and what it lets clients ask of it."""

from __future__ import annotations

import ipaddress
import re
from typing import Self

from pydantic import Field, SecretStr, field_validator, model_validator

from outrider_cluster.gateway.scaling_settings import GatewayScaling
from outrider_runtime.settings import ByteSize, Settings
from outrider_wire.sampling import MAX_CHOICES

_LONGEST_NAME = 253
_HOST_NAME = re.compile(r"\w[\w-]{0,62}(\.\w[\w-]{0,62})*\.?", re.ASCII)


class GatewaySettings(Settings):
    """Listeners and limits of one gateway process."""

    http_host: str = Field(default="127.0.0.1", min_length=1, max_length=_LONGEST_NAME)
    """Address that the HTTP and gRPC servers bind; 0.0.0.0 for all. IPv6 stands without brackets and zone."""
    http_port: int = Field(default=8000, ge=0, le=65535)
    """Port of the OpenAI HTTP API; 0 takes a free one."""
    grpc_port: int = Field(default=9000, ge=0, le=65535)
    """Port of the gRPC API; 0 takes a free one."""
    api_keys: tuple[SecretStr, ...] = ()
    """When any is given, every HTTP route but /health and every rpc but health needs one as a bearer token. Printable
    ASCII without spaces: what HTTP lets a client send."""
    max_body_bytes: ByteSize = Field(default=4 << 20, ge=1024, le=256 << 20)
    """Longest HTTP request body; longer ones are refused before they are read."""
    max_body_values: int = Field(default=1 << 19, ge=1024)
    """JSON values in one HTTP request body at most, token ids among them; more are refused before they are parsed."""
    max_header_bytes: ByteSize = Field(default=64 << 10, ge=4096, le=1 << 20)
    """Longest HTTP request head; the same for what follows a body in pieces."""
    max_connections: int = Field(default=2048, ge=1)
    """HTTP connections that may be open at once; more are answered with 503 and closed."""
    head_timeout_s: float = Field(default=20.0, gt=0)
    """Longest time that a client may take to send a request's head, or to begin one on a new connection."""
    max_in_flight: int = Field(default=512, ge=1)
    """Choices that may be in progress at once; more are refused with 429."""
    max_prompts: int = Field(default=32, ge=1)
    """Prompts in one completions request at most."""
    request_timeout_s: float = Field(default=600.0, gt=0)
    """Longest life of a request."""
    body_timeout_s: float = Field(default=30.0, gt=0)
    """Longest time that a client may take to send its request."""
    slow_reader_timeout_s: float = Field(default=30.0, gt=0)
    """A client that takes in nothing for this long is cut off."""
    target_wait_s: float = Field(default=30.0, ge=0)
    """How long a request waits for a target to become ready before it is answered with 503. Longer than a target of a
    small model needs to come back, so that the only one may be lost without its requests."""
    max_moves: int = Field(default=3, ge=0)
    """How often one request may move to another target after its target was lost."""
    suspicion_s: float = Field(default=6.0, ge=0)
    """For how long a target that was lost is asked by new requests only when no other is ready, and not at all by those
    that lost it. Longer than the controller lists a silent one: what is still listed afterwards is alive."""
    affinity_slack: int = Field(default=2, ge=0)
    """How many requests more than the least loaded target another may hold and still get those that know its cache."""
    bind_timeout_s: float = Field(default=30.0, ge=0)
    """How long to wait for a port that a predecessor still holds."""
    drain_s: float = Field(default=30.0, ge=0)
    """How long requests may take to finish when the gateway stops."""
    autoscaling: GatewayScaling | None = None
    """As many gateways as the load calls for, within bounds; None: one."""

    @field_validator("http_host")
    @classmethod
    def _host_can_be_bound(cls, host: str) -> str:
        if "%" in host:
            raise ValueError("has a zone, which servers here cannot bind")
        try:
            ipaddress.ip_address(host)
        except ValueError:
            if host.replace(".", "").isdecimal() or not _HOST_NAME.fullmatch(host):
                raise ValueError("is neither an IP address nor the name of a host") from None
        return host

    @field_validator("api_keys")
    @classmethod
    def _keys_can_be_sent(cls, keys: tuple[SecretStr, ...]) -> tuple[SecretStr, ...]:
        for number, key in enumerate(keys):
            text = key.get_secret_value()
            if not text or not all("!" <= character <= "~" for character in text):
                raise ValueError(f"key {number} is empty, or holds anything but printable ASCII without spaces")
        return keys

    @model_validator(mode="after")
    def _one_request_fits(self) -> Self:
        if self.max_prompts * MAX_CHOICES > self.max_in_flight:
            raise ValueError(
                f"max_in_flight ({self.max_in_flight}) must be at least max_prompts ({self.max_prompts}) "
                f"x {MAX_CHOICES} choices, or the largest allowed request could never be admitted"
            )
        if self.http_port == self.grpc_port != 0:
            raise ValueError(f"http_port and grpc_port are both {self.http_port}: they must differ")
        return self
