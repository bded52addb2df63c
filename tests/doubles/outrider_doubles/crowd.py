"""Clients that ask again and again, each one question after the other, until they are told to stop."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Self


class Crowd:
    """Asks from entry to exit; `answers` are all that came so far.

    Args:
        ask: one question; raises if it is not answered well.
        clients: how many ask at once.
    """

    def __init__(self, ask: Callable[[], str], clients: int = 1) -> None:
        self.answers: list[str] = []
        self._ask = ask
        self._clients = clients
        self._enough = threading.Event()
        self._pool = ThreadPoolExecutor(clients)
        self._running: list[Future[None]] = []

    def __enter__(self) -> Self:
        """Begin to ask."""
        self._running = [self._pool.submit(self._ask_on) for _ in range(self._clients)]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ask no more. Raises what went wrong with a question."""
        self._enough.set()
        self._pool.shutdown()
        for client in self._running:
            client.result()

    def _ask_on(self) -> None:
        while not self._enough.is_set():
            self.answers.append(self._ask())
