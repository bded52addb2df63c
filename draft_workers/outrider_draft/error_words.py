"""Errors of users' code in words that can be shown, whatever the code made of them."""

from __future__ import annotations

from outrider_runtime.printable import printable

MOST_CHARACTERS = 200
_MOST_OF_KIND = 64


def kind_of(error: BaseException) -> str:
    """The name of an error's class, cut where it is long."""
    try:
        name = str(type(error).__name__)
    except BaseException:  # classes of users may have classes of their own
        name = "an error without a name"
    return printable(name[:_MOST_OF_KIND])[:_MOST_OF_KIND]


def words_of(error: BaseException) -> str:
    """Class and text of an error on one line, as UTF-8 can hold them, cut where they are long."""
    try:
        text = str(error)
    except BaseException as failure:  # the text is made by the user's code, which may raise anything
        text = f"(no text: {kind_of(failure)} while making it)"
    return printable(f"{kind_of(error)}: {text}"[:MOST_CHARACTERS])[:MOST_CHARACTERS]
