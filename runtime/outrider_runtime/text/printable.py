"""Text of others, to be shown to people."""

from __future__ import annotations


def printable(text: str) -> str:
    """The same on one line, with nothing in it that a terminal would obey."""
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)
