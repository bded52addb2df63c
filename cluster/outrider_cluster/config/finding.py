"""One thing that is wrong with a config: where, what was given, what is allowed, and the likely intention."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from outrider_runtime.errors import Words, shorten

KeyPath: TypeAlias = tuple[str | int, ...]
"""Keys and list positions from the top of a document to a value."""

UNKNOWN_KEY = "unknown key"
"""The problem of a key that does not exist where it stands."""
_MOST_NAMES, _ALIKE, _LEAST_LIKENESS = 12, 3, 0.5
_SECRET_KEYS = {"api_keys", "ssl_keyfile_password"}


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault. All texts are for people; only `path` is for programs."""

    path: KeyPath
    problem: str
    value: str | None = None
    """The offending value, shortened; None when something is missing. Secrets are never shown."""
    allowed: str | None = None
    suggestion: str | None = None
    """What was probably meant."""
    line: int | None = None
    """Line of the file, from 1."""

    def under(self, prefix: KeyPath) -> Finding:
        """The same finding in a document that holds this one at `prefix`."""
        return replace(self, path=(*prefix, *self.path))

    def __str__(self) -> str:
        parts = [f"{format_path(self.path)}: {self.problem}" if self.path else self.problem]
        if self.value is not None:
            parts.append(f"got {self.value}")
        if self.allowed is not None:
            parts.append(f"allowed: {self.allowed}")
        text = ", ".join(parts)
        return text if self.suggestion is None else f"{text}. {self.suggestion}"


def format_path(path: KeyPath) -> str:
    """`path` as people write it: ``applications[0].args.target``."""
    text = "".join(f"[{key}]" if isinstance(key, int) else f".{shorten(Words(key))}" for key in path)
    return text.removeprefix(".")


def show(path: KeyPath, value: object) -> str:
    """A short text for `value`, unless it lies at a path that holds secrets."""
    return "<hidden>" if _SECRET_KEYS.intersection(path) else shorten(value)


def nearest(word: object, known: Iterable[str]) -> str | None:
    """The known word that `word` was probably meant to be; None when nothing is close."""
    close = difflib.get_close_matches(str(word)[:80].lower(), list(known), n=1, cutoff=0.6)
    return close[0] if close else None


def _known_keys(word: object, names: Sequence[str]) -> str:
    """All keys, or of many those that look like `word` if any do."""
    if not names:
        return "no key"
    alike = difflib.get_close_matches(str(word)[:80].lower(), names, n=_ALIKE, cutoff=_LEAST_LIKENESS)
    if len(names) <= _MOST_NAMES or not alike:
        return f"one of the keys {', '.join(names)}"
    return f"one of {len(names)} keys, the nearest are {', '.join(alike)}"


def unknown_key(path: KeyPath, value: object, known: Iterable[str]) -> Finding:
    """A key that does not exist. `known` are those that do, at the same place."""
    names = sorted(known)
    close = nearest(path[-1], names)
    return Finding(
        path=path,
        problem=UNKNOWN_KEY,
        value=show(path, value),
        allowed=_known_keys(path[-1], names),
        suggestion=None if close is None else f"Did you mean {close}?",
    )
