"""The option for a gateway's key."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer


def _sendable(key: str | None) -> str | None:
    """A key that HTTP can carry; gateways take no others."""
    if key is not None and not all("!" <= character <= "~" for character in key):
        raise typer.BadParameter("a key is printable ASCII without spaces")
    return key or None


ApiKey: TypeAlias = Annotated[
    str | None, typer.Option(envvar="OUTRIDER_API_KEY", help="Where the gateway wants one.", callback=_sendable)
]
