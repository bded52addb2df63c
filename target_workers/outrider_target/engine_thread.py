"""The thread that an engine's steps run on."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from outrider_target.engine import Engine

_LOG = logging.getLogger(__name__)
_IDLE_CHECK_S = 1.0


class EngineThread:
    """Builds an engine on its own thread and steps it until told to stop.

    The engine is built there too, because thread counts of the numeric libraries are per thread.

    Args:
        build: makes the engine; runs on the new thread.
        while_idle: called there about once a second while there is nothing to do; what it raises stops the engine.
    """

    def __init__(self, build: Callable[[], Engine], while_idle: Callable[[], None] = lambda: None) -> None:
        self._build = build
        self._while_idle = while_idle
        self._engine: Engine | None = None
        self._failure: BaseException | None = None
        self._built = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="outrider-engine", daemon=True)

    def start(self) -> Engine:
        """Start the thread and return the engine when it is built. Blocks.

        Raises:
            Exception: whatever `build` raised.
        """
        self._thread.start()
        self._built.wait()
        if self._engine is None:
            assert self._failure is not None
            raise self._failure
        return self._engine

    def stop(self) -> None:
        """End after the step in progress. Blocks until the thread is gone."""
        self._stopping.set()
        if self._engine is not None:
            self._engine.wake()
        self._thread.join()

    @property
    def failure(self) -> BaseException | None:
        """Why the engine stopped by itself, if it did."""
        return self._failure

    def _run(self) -> None:
        try:
            self._engine = self._build()
        except BaseException as error:  # handed to the thread that waits in start()
            self._failure = error
            return
        finally:
            self._built.set()
        try:
            self._loop(self._engine)
        except Exception as error:
            _LOG.exception("the engine stopped")
            self._failure = error
            self._engine.fail(error)

    def _loop(self, engine: Engine) -> None:
        while not self._stopping.is_set():
            if not engine.step():
                self._while_idle()
                engine.wait_for_work(_IDLE_CHECK_S)
