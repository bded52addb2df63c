"""What `outrider top` does: look, show, wait, again. A cluster that is gone is looked for again."""

from __future__ import annotations

import time

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.live import Live
from rich.segment import Segment
from rich.text import Text

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
            live.update(Fitted(shown) if console.is_terminal else shown, refresh=True)
            time.sleep(every_s)


class Fitted:
    """What does not fit into a window is cut, and the last line says so."""

    def __init__(self, content: RenderableType) -> None:
        self._content = content

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """As many lines as the window has."""
        lines = console.render_lines(self._content, options.update(height=None), pad=False)
        room = console.height
        if len(lines) > room:
            hidden = len(lines) - room + 1
            hint = Text(f"… {hidden} lines more: make the window taller, or see `outrider status`")
            lines = [*lines[: room - 1], *console.render_lines(hint, options.update(height=1), pad=False)]
        for line in lines:
            yield from line
            yield Segment.line()
