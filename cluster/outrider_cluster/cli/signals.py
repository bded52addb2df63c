"""Ctrl-C, SIGTERM and a closed terminal, all as one exception in the main thread."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TypeAlias

from outrider_cluster.cli.failure import Interrupted

_Handler: TypeAlias = Callable[[int, FrameType | None], None] | signal.Handlers
_ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def signals_interrupt() -> Iterator[None]:
    """Each of these signals raises `Interrupted`."""
    with _handled_by(_interrupt):
        yield


@contextmanager
def signals_ignored() -> Iterator[None]:
    """While things are being stopped: an impatient second Ctrl-C must not leave half of them behind."""
    with _handled_by(signal.SIG_IGN):
        yield


def wait_for_interruption() -> None:
    """Return when one of these signals came."""
    try:
        while True:
            signal.pause()
    except Interrupted:
        return


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise Interrupted(signal.Signals(number).name)


@contextmanager
def _handled_by(handler: _Handler) -> Iterator[None]:
    before = {number: signal.signal(number, handler) for number in _ENDINGS}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)
