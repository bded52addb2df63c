"""Whether the addresses that a file asks for are free on this machine, tried before anything starts."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterable

from outrider_cluster.cli.failure import CommandFailed, errors
from outrider_cluster.config.finding import format_path
from outrider_cluster.config.ports import Listener


def require_free(listeners: Iterable[Listener]) -> None:
    """Return if all of them can be bound now. Port 0 always can.

    Raises:
        CommandFailed: some cannot; each is named with the key that asks for it, several in lines of their own.
    """
    troubles = [trouble for listener in listeners if (trouble := _trouble(listener)) is not None]
    if len(troubles) == 1:
        raise CommandFailed(f"{troubles[0]}; nothing was started")
    if troubles:
        for trouble in troubles:
            errors.print(trouble)
        raise CommandFailed(f"{len(troubles)} addresses cannot be had; nothing was started")


def _trouble(listener: Listener) -> str | None:
    key = format_path(listener.path)
    address = f"[{listener.host}]:{listener.port}" if ":" in listener.host else f"{listener.host}:{listener.port}"
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(listener.host, listener.port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            # As the servers do: connections that have just ended do not hold a port.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(place)
            probe.listen()
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            return f"{address} is in use: stop the server there, or give {key} another port"
        return f"{address}, of {key}, cannot be listened on: {error.strerror}"
    return None
