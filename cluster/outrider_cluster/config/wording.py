"""What pydantic finds wrong with a value, in our words: short, since what is allowed stands beside it."""

from __future__ import annotations

from pydantic_core import ErrorDetails

_KINDS = {
    "int": "an integer",
    "float": "a number",
    "string": "text",
    "bool": "true or false",
    "list": "a list",
    "tuple": "a list",
    "set": "a list",
    "frozen_set": "a list",
    "dict": "a mapping of keys to values",
    "mapping": "a mapping of keys to values",
    "model": "a mapping of keys to values",
}
_PROBLEMS = {
    "greater_than": "is too small",
    "greater_than_equal": "is too small",
    "less_than": "is too large",
    "less_than_equal": "is too large",
    "int_parsing_size": "is too large",
    "int_from_float": "is no whole number",
    "finite_number": "must be a finite number",
    "string_too_short": "is too short",
    "string_too_long": "is too long",
    "too_short": "has too few entries",
    "too_long": "has too many entries",
    "string_pattern_mismatch": "has the wrong form",
    "literal_error": "is not among the choices",
    "enum": "is not among the choices",
}


def problem_of(error: ErrorDetails) -> str:
    """What is wrong, without what would be allowed."""
    if error["type"] == "value_error":  # our own checks say all themselves
        text = error["msg"].removeprefix("Value error, ")
        return text[:1].lower() + text[1:]
    return _PROBLEMS.get(error["type"], "is of the wrong kind")


def kind_wanted_by(error: ErrorDetails) -> str | None:
    """Which kind of value would have been right, where the kind is what is wrong."""
    return _KINDS.get(error["type"].rpartition("_")[0])
