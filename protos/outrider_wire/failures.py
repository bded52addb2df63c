"""What gRPC raises where a call is made or waited for, as errors of ours."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import grpc

from outrider_runtime.errors import NotReady, OutriderError
from outrider_wire.status import error_from_rpc


@contextmanager
def our_failures(read: Callable[[grpc.aio.AioRpcError], OutriderError] = error_from_rpc) -> Iterator[None]:
    """Wraps one step of a call: making it, sending, or waiting for an answer.

    Args:
        read: what a failed call stands for.

    Raises:
        OutriderError: as the peer's status says; NotReady if the call, or the channel beneath it, is closed here.
        asyncio.CancelledError: the task that makes the step is cancelled.
    """
    task = asyncio.current_task()
    before = 0 if task is None else task.cancelling()
    failure: OutriderError | None = None
    cause: BaseException | None = None
    try:
        yield
    except grpc.aio.AioRpcError as error:
        failure, cause = read(error), error
    except (grpc.aio.BaseError, asyncio.InvalidStateError) as error:
        failure, cause = NotReady("the call or its connection is closed"), error
    except asyncio.CancelledError as error:
        if task is None or task.cancelling():
            raise
        # gRPC reports a call or channel that was closed on this side as if somebody had cancelled whoever waits for it.
        failure, cause = NotReady("the call or its connection was closed"), error
    if task is not None and task.cancelling() > before:
        # gRPC swallows a cancellation that comes while a call begins, and goes on or fails in another way.
        raise asyncio.CancelledError from cause
    if failure is not None:
        raise failure from cause
