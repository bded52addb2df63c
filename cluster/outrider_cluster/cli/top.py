"""What `outrider top` does: look, show, wait, again. A cluster that is gone is looked for again."""

from __future__ import annotations

import time

from rich.console import Console
from rich.live import Live

from outrider_cluster.cli.failure import CommandFailed
from outrider_cluster.cli.live_metrics import Metrics, fetch_metrics
from outrider_cluster.cli.status_report import fetch_status
from outrider_cluster.cli.top_frame import Moment, frame, lost
from outrider_runtime.clock import Clock


class Watcher:
    """Looks at one cluster, and remembers the last look for rates.

    Args:
        url: base URL of a gateway.
        api_key: where it wants one.
        clock: monotonic time.
    """

    def __init__(self, url: str, api_key: str | None, clock: Clock) -> None:
        self._url = url
        self._api_key = api_key
        self._clock = clock
        self._last: Metrics | None = None

    def look(self) -> Moment:
        """The cluster now.

        Raises:
            CommandFailed: nothing answers.
        """
        status = fetch_status(self._url, self._api_key)
        now = fetch_metrics(self._url, self._api_key, self._clock.now_s())
        last, self._last = self._last, now
        if last is None:
            return Moment(status, now, now, None)
        return Moment(status, now, now.since(last), now.at_s - last.at_s)


def show_once(watcher: Watcher, console: Console) -> None:
    """Print one frame.

    Raises:
        CommandFailed: nothing answers.
    """
    console.print(frame(watcher.look()))


def show_live(watcher: Watcher, url: str, console: Console, every_s: float) -> None:
    """Show frames until interrupted; only an interruption ends it."""
    with Live(console=console, screen=console.is_terminal, auto_refresh=False) as live:
        while True:
            try:
                shown = frame(watcher.look())
            except CommandFailed as error:
                shown = lost(url, str(error))
            live.update(shown, refresh=True)
            time.sleep(every_s)
