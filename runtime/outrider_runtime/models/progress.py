"""How long work on model files is reported: a bar where a person watches, plain lines elsewhere."""

from __future__ import annotations

from typing import Protocol, TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn


class ProgressReporter(Protocol):
    """Receives the stages of a piece of work, one after the other."""

    def stage(self, name: str) -> None:
        """A stage begins; the one before it is done."""

    def advance_to(self, fraction: float) -> None:
        """The current stage is done to `fraction`, in [0, 1]. A stage that never calls this has no known length."""

    def close(self) -> None:
        """The work is over, whether done or not."""


class SilentProgress:
    """Reports nothing."""

    def stage(self, name: str) -> None:
        """Ignored."""

    def advance_to(self, fraction: float) -> None:
        """Ignored."""

    def close(self) -> None:
        """Nothing to do."""


class LineProgress:
    """One line a stage, for logs."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def stage(self, name: str) -> None:
        """Write the name of the stage."""
        print(f"{name} …", file=self._stream, flush=True)

    def advance_to(self, fraction: float) -> None:
        """Ignored: a log needs no fractions."""

    def close(self) -> None:
        """Nothing to do."""


class BarProgress:
    """A moving bar for each stage, for terminals."""

    def __init__(self, stream: TextIO) -> None:
        columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
        self._progress = Progress(*columns, console=Console(file=stream))
        self._task: TaskID | None = None

    def stage(self, name: str) -> None:
        """Finish the bar of the stage before and start another."""
        self._finish_stage()
        self._progress.start()
        self._task = self._progress.add_task(name, total=None)

    def advance_to(self, fraction: float) -> None:
        """Move the bar of the current stage."""
        assert self._task is not None, "a stage comes first"
        self._progress.update(self._task, total=1.0, completed=fraction)

    def close(self) -> None:
        """Stop drawing and leave the terminal as it was."""
        self._finish_stage()
        self._progress.stop()

    def _finish_stage(self) -> None:
        if self._task is not None:
            self._progress.update(self._task, total=1.0, completed=1.0)
            self._task = None


def choose_progress(stream: TextIO) -> ProgressReporter:
    """A bar if `stream` is a terminal, lines otherwise."""
    return BarProgress(stream) if stream.isatty() else LineProgress(stream)
