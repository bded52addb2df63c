"""Several streams as one, in order of arrival."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import TypeVar

T = TypeVar("T")


async def merged(streams: Sequence[AsyncGenerator[T, None]]) -> AsyncGenerator[T, None]:
    """Items of all `streams` as they come; a slow reader holds all of them back.

    The first failure of any stream ends all and is raised. Leaving early closes every stream.
    """
    arrived: asyncio.Queue[T | _End] = asyncio.Queue(maxsize=2 * len(streams))
    tasks = [asyncio.create_task(_drain(stream, arrived)) for stream in streams]
    try:
        running = len(tasks)
        while running:
            item = await arrived.get()
            if isinstance(item, _End):
                running -= 1
                if item.error is not None:
                    raise item.error
            else:
                yield item
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class _End:
    """A stream is over, well or not."""

    def __init__(self, error: Exception | None) -> None:
        self.error = error


async def _drain(stream: AsyncGenerator[T, None], into: asyncio.Queue[T | _End]) -> None:
    error: Exception | None = None
    try:
        async with aclosing(stream):
            async for item in stream:
                await into.put(item)
    except Exception as failure:  # handed to the reader, who raises it
        error = failure
    await into.put(_End(error))
