"""What gRPC raises where a call is made or waited for, as errors of ours."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import grpc

from outrider_runtime.errors import NotReady
from outrider_wire.status import error_from_rpc


@contextmanager
def our_failures() -> Iterator[None]:
    """Wraps making a call and waiting for it.

    Raises:
        OutriderError: as the peer's status says; NotReady if the call, or the channel beneath it, is closed here.
        asyncio.CancelledError: the caller's own task is cancelled.
    """
    try:
        yield
    except grpc.aio.AioRpcError as error:
        raise error_from_rpc(error) from error
    except (grpc.aio.BaseError, asyncio.InvalidStateError) as error:
        raise NotReady("the call or its connection is closed") from error
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        # gRPC reports a call or channel that was closed on this side as if somebody had cancelled whoever waits for it.
        raise NotReady("the call or its connection was closed") from error
