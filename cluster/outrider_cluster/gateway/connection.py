"""Work that lasts only as long as its client listens."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from starlette.types import Receive

from outrider_cluster.gateway.errors import ClientGone, CutShort

T = TypeVar("T")


async def while_connected(receive: Receive, work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`, which is cancelled the moment the client disconnects.

    Servers cancel the call when they stop and have waited long enough. That ends in an error like others, so that the
    client is told.

    Args:
        receive: of the request, whose body has been read.
        work: run as a task of its own.

    Raises:
        ClientGone: the client left; `work` has ended.
        CutShort: the call was cancelled; `work` has ended.
    """
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(disconnected(receive))
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        raise ClientGone("the client closed the connection")
    except asyncio.CancelledError as error:
        if working.cancelled():
            raise
        raise CutShort("the gateway stops, and this answer was not finished within its grace time") from error
    finally:
        working.cancel()
        leaving.cancel()
        await asyncio.gather(working, leaving, return_exceptions=True)


async def disconnected(receive: Receive) -> None:
    """Return once the client has closed the connection."""
    while (await receive())["type"] != "http.disconnect":
        pass
