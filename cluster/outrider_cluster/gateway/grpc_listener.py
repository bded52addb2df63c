"""Our own gRPC listener for clients."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from outrider_cluster.gateway.settings import GatewaySettings
from outrider_wire.generate_service import GenerateHandler, generate_service
from outrider_wire.server import StartedServer, start_server

_BIND_PAUSE_S = 0.2


class GrpcListener:
    """Serves `outrider.v1.GenerateService`, health and reflection until stopped.

    Args:
        handler: answers requests.
        settings: address and port.
        api_keys: accepted bearer tokens; none means that everybody may call.
    """

    def __init__(self, handler: GenerateHandler, settings: GatewaySettings, api_keys: Sequence[str]) -> None:
        self._handler = handler
        self._settings = settings
        self._api_keys = tuple(api_keys)
        self._server: StartedServer | None = None

    @property
    def port(self) -> int:
        """The port; the real one once started."""
        return self._settings.grpc_port if self._server is None else self._server.port

    @property
    def address(self) -> str:
        """host:port; empty until started."""
        return "" if self._server is None else self._server.address

    async def start(self) -> None:
        """Bind and serve. A predecessor may hold the port until it has drained: wait for it.

        Raises:
            OSError: the port is not free, even after `bind_timeout_s`.
        """
        loop = asyncio.get_running_loop()
        end_s = loop.time() + self._settings.bind_timeout_s
        while self._server is None:
            try:
                self._server = await self._bind()
            except OSError:
                if loop.time() >= end_s:
                    raise
                await asyncio.sleep(_BIND_PAUSE_S)

    async def set_serving(self, serving: bool) -> None:
        """What grpc.health.v1 answers."""
        if self._server is not None:
            await self._server.set_serving(serving)

    async def stop(self, grace_s: float) -> None:
        """Refuse new calls, let those in progress finish for `grace_s`."""
        if self._server is not None:
            await self._server.stop(grace_s)

    async def _bind(self) -> StartedServer:
        host, port = self._settings.http_host, self._settings.grpc_port
        return await start_server(host, port, [generate_service(self._handler)], tokens=self._api_keys)
