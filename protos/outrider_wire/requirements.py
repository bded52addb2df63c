"""How a field is refused: the words that all bounds are checked with."""

from __future__ import annotations

from collections.abc import Sequence

from outrider_runtime.errors import InvalidRequest, Words


def require(holds: bool, field: str, value: object, allowed: str) -> None:
    """Refuse a field unless `holds`.

    Raises:
        InvalidRequest: it does not hold.
    """
    if not holds:
        raise InvalidRequest(field, value, allowed)


def check_text(field: str, text: str) -> None:
    """Refuse what is no Unicode text.

    Raises:
        InvalidRequest: `text` holds half of a surrogate pair.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidRequest(field, text[error.start : error.end], "Unicode text without lone surrogates") from error


def check_ids(field: str, ids: Sequence[int], vocab_size: int) -> None:
    """Refuse ids outside the vocabulary.

    Raises:
        InvalidRequest: names the first such id and its place.
    """
    if ids and not (0 <= min(ids) and max(ids) < vocab_size):
        at, token = next((at, token) for at, token in enumerate(ids) if not 0 <= token < vocab_size)
        raise InvalidRequest(f"{field}[{at}]", token, f"token ids from 0 to {vocab_size - 1}")


def check_count(field: str, count: int, most: int, what: str) -> None:
    """Refuse more than `most` of something.

    Raises:
        InvalidRequest: there are more.
    """
    require(count <= most, field, Words(f"{count} {what}"), f"at most {most} {what}")


def check_texts(field: str, texts: Sequence[str], most: int, longest: int) -> None:
    """Refuse too many texts, empty ones, and ones of more than `longest` characters.

    Raises:
        InvalidRequest: names the text.
    """
    check_count(field, len(texts), most, "strings")
    for at, text in enumerate(texts):
        check_text(f"{field}[{at}]", text)
        require(1 <= len(text) <= longest, f"{field}[{at}]", text, f"1 to {longest} characters")
