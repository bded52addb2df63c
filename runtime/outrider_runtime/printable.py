"""Text of others, to be shown to people."""

from __future__ import annotations


def printable(text: str) -> str:
    """The same on one line, escaped where a terminal would obey it, or UTF-8 could not hold it."""
    return "".join(character if character.isprintable() else f"\\u{ord(character):04x}" for character in text)
