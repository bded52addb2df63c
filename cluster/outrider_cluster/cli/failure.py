"""How a command ends: exit codes, and errors of one line.

0    done
1    refused or failed; the reason is the last line on standard error
2    the command line itself is wrong
130  interrupted before it was done
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer
from rich.console import Console

from outrider_runtime.errors import OutriderError

FAILED = 1
INTERRUPTED = 130

errors = Console(stderr=True, soft_wrap=True, highlight=False, markup=False)
"""Where progress and errors go; results go to standard output."""


class CommandFailed(OutriderError):
    """A command cannot do what it was asked; the message is one line and says what to do."""


class Interrupted(KeyboardInterrupt):
    """The user, or the system, wants the command to end. No handler of ordinary exceptions holds it up."""


@contextmanager
def exit_codes() -> Iterator[None]:
    """Turn exceptions into exit codes, and their text into one line."""
    try:
        yield
    except OutriderError as error:
        errors.print(f"outrider: {one_line(str(error))}")
        raise typer.Exit(FAILED) from error
    except KeyboardInterrupt as error:
        errors.print("outrider: interrupted")
        raise typer.Exit(INTERRUPTED) from error


def one_line(text: str) -> str:
    """`text` without line breaks."""
    return " ".join(text.split())
