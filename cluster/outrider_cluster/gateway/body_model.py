"""Base of request bodies: no field is ignored by accident.

Every key of a body is either a field that we serve, a parameter that changes nothing about the answer (ignored on
purpose), a parameter that we accept at its neutral value only, or unknown and refused with the nearest known name.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError, model_validator
from pydantic_core import ErrorDetails, PydanticCustomError

from outrider_cluster.gateway.errors import UnknownParameter, UnsupportedParameter
from outrider_runtime.errors import InvalidRequest, Words, shorten

_TYPES = {
    "string_type": "text",
    "string_unicode": "Unicode text without lone surrogates",
    "bool_type": "true or false",
    "int_type": "an integer",
    "float_type": "a number",
    "list_type": "a list",
    "dict_type": "an object",
    "model_type": "an object",
}
"""JSON's words for what pydantic names by Python's types and our classes."""

_KEY_CHARACTERS = 64


class NeutralOnly:
    """A parameter that we do not serve: accepted only where it asks for nothing.

    Args:
        is_neutral: whether a value asks for nothing.
        allowed: the accepted values in words, for the refusal.
    """

    def __init__(self, is_neutral: Callable[[Any], bool], allowed: str) -> None:
        self.is_neutral = is_neutral
        self.allowed = allowed


def neutral(*values: object) -> NeutralOnly:
    """Accepts null and exactly `values` (1 and 1.0 are the same, 1 and true are not)."""

    def is_neutral(value: object) -> bool:
        return value is None or any(_same(value, known) for known in values)

    words = " or ".join(["null", *map(shorten, values)])
    return NeutralOnly(is_neutral, f"{words} (anything else is not supported yet)")


class Body(BaseModel):
    """A part of a request body. Types are strict: no text where a number belongs."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=True)

    ignored: ClassVar[frozenset[str]] = frozenset()
    """Known parameters that change nothing about the answer."""
    neutral_only: ClassVar[Mapping[str, NeutralOnly]] = {}
    """Known parameters that are not served."""
    elsewhere: ClassVar[Mapping[str, str]] = {}
    """Fields of another API, and what to say of them."""

    @classmethod
    def parse(cls, raw: Mapping[str, object]) -> Self:
        """The checked body.

        Raises:
            InvalidRequest: naming the first offending field as the client wrote it.
        """
        try:
            return cls.model_validate(raw)
        except ValidationError as error:
            raise _refusal(error.errors(include_url=False)[0]) from error

    @model_validator(mode="before")
    @classmethod
    def _judge_keys(cls, raw: Any) -> Any:
        if not isinstance(raw, Mapping):
            return raw
        kept = {}
        for key, value in raw.items():
            if key in cls._served():
                kept[key] = value
            elif key in cls.neutral_only:
                if not cls.neutral_only[key].is_neutral(value):
                    raise FoundField(key, value, cls.neutral_only[key].allowed, UnsupportedParameter)
            elif key not in cls.ignored:
                raise FoundField(key, value, cls._nearest(key), UnknownParameter)
        return kept

    @classmethod
    def _served(cls) -> set[str]:
        """Fields that we serve, as clients write them."""
        return {field.alias or name for name, field in cls.model_fields.items()}

    @classmethod
    def _nearest(cls, key: str) -> str:
        if key in cls.elsewhere:
            return f"it belongs to {cls.elsewhere[key]}"
        known = sorted({*cls._served(), *cls.ignored, *cls.neutral_only})
        close = difflib.get_close_matches(key[:64], known, n=1, cutoff=0.5)
        return f"did you mean {shorten(close[0])}?" if close else f"known here: {', '.join(sorted(cls._served()))}"


def at_most(entries: int) -> BeforeValidator:
    """Refuses a larger object before its members are looked at: pydantic would collect what is wrong with each."""

    def check(value: object) -> object:
        if isinstance(value, dict) and len(value) > entries:
            raise PydanticCustomError("too_long", "too many entries", {"max_length": entries})
        return value

    return BeforeValidator(check)


class FoundField(ValueError):
    """A field that was judged; pydantic adds where it stands."""

    def __init__(self, key: str, value: object, allowed: str, refusal: type[InvalidRequest]) -> None:
        self.key, self.value, self.allowed, self.refusal = key, value, allowed, refusal
        super().__init__(allowed)


def _refusal(detail: ErrorDetails) -> InvalidRequest:
    cause = detail.get("ctx", {}).get("error")
    if isinstance(cause, FoundField):
        return cause.refusal(_path([*detail["loc"], cause.key]), cause.value, cause.allowed)
    field = _path(detail["loc"]) or "body"
    if detail["type"] == "too_long":
        count, most = len(detail["input"]), detail["ctx"]["max_length"]
        return InvalidRequest(field, Words(f"{count} entries"), f"at most {most} entries")
    if detail["type"] == "missing":
        return InvalidRequest(field, Words("nothing"), "a value: this field is required")
    return InvalidRequest(field, detail["input"], _allowed(detail))


def _path(parts: Iterable[str | int]) -> str:
    """``messages[0].role``. Keys are the client's: none of them may flood the answer."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{cut_key(part)}" for part in parts).removeprefix(".")


def _allowed(detail: ErrorDetails) -> str:
    if detail["type"] == "literal_error":
        return str(detail["ctx"]["expected"]).replace("'", '"')
    return _TYPES.get(detail["type"]) or detail["msg"].removeprefix("Value error, ")


def cut_key(key: str) -> str:
    """A key of the client's as errors name it."""
    return key if len(key) <= _KEY_CHARACTERS else key[: _KEY_CHARACTERS - 1] + "…"


def _same(value: object, known: object) -> bool:
    return isinstance(value, bool) == isinstance(known, bool) and value == known
