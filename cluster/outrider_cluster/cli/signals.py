"""Ctrl-C, SIGTERM and a closed terminal, all as one exception in the main thread."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from outrider_cluster.cli.failure import Interrupted

_ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def interrupt_on_signals() -> None:
    """From now on each of these signals raises `Interrupted`. To be called again after libraries with own handlers."""
    for number in _ENDINGS:
        signal.signal(number, _interrupt)


@contextmanager
def signals_ignored() -> Iterator[None]:
    """While things are being stopped: an impatient second Ctrl-C must not leave half of them behind."""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in _ENDINGS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def wait_for_interruption() -> None:
    """Return when one of these signals came."""
    try:
        while True:
            signal.pause()
    except Interrupted:
        return


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise Interrupted(signal.Signals(number).name)
