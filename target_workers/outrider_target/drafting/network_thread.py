"""An asyncio loop on a thread of its own, so that the engine's thread never runs or waits for the network."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine

_CLEAR_AWAY_S = 1.0


class NetworkThread:
    """Runs callbacks and coroutines on its loop. After `stop`, callbacks are ignored."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._lock = threading.Lock()
        self._stopped = False
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)
        self._thread.start()

    def post(self, callback: Callable[[], None]) -> None:
        """Run `callback` on the loop soon. Returns at once."""
        with self._lock:
            if not self._stopped:
                self._loop.call_soon_threadsafe(callback)

    def stop(self, last: Coroutine[None, None, None]) -> None:
        """Run `last`, then end the thread and wait for it."""
        with self._lock:
            already, self._stopped = self._stopped, True
        if already:
            last.close()
            return
        asyncio.run_coroutine_threadsafe(_then_idle(last), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class Nudge:
    """A callback on a network thread of which at most one call waits, however often and from wherever it is wanted.

    Rounds that are faster than a starved loop would fill its queue without end, and what links need would wait in it.
    """

    def __init__(self, thread: NetworkThread, callback: Callable[[], None]) -> None:
        self._thread = thread
        self._callback = callback
        self._waits = False

    def __call__(self) -> None:
        """Run the callback soon, after all that the caller has done so far. Returns at once."""
        if not self._waits:
            self._waits = True
            self._thread.post(self._run)

    def _run(self) -> None:
        self._waits = False  # first, so that whoever comes from here on is not taken for served
        self._callback()


async def _then_idle(last: Coroutine[None, None, None]) -> None:
    """Run `last`, then let what gRPC still has to clear away end; a loop must not close over running tasks."""
    await last
    remaining = asyncio.all_tasks() - {asyncio.current_task()}
    if remaining:
        _, stuck = await asyncio.wait(remaining, timeout=_CLEAR_AWAY_S)
        for task in stuck:
            task.cancel()
        await asyncio.gather(*stuck, return_exceptions=True)
