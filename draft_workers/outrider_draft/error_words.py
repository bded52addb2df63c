"""Errors of users' code in words that can be shown, whatever the code made of them."""

from __future__ import annotations

MOST_CHARACTERS = 200


def words_of(error: BaseException) -> str:
    """Class and text of an error as UTF-8 can hold them, cut where they are long."""
    try:
        text = str(error)
    except BaseException as failure:  # the text is made by the user's code, which may raise anything
        text = f"(no text: {type(failure).__name__} while making it)"
    return f"{type(error).__name__}: {text}"[:MOST_CHARACTERS].encode("utf-8", "replace").decode("utf-8")
