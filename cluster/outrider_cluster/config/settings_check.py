"""Every fault of a mapping that should become a settings object, as findings with bounds and nearest known keys."""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin

from pydantic import BaseModel, SecretStr, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from outrider_cluster.config.finding import Finding, KeyPath, show, unknown_key

_NAMES = {int: "an integer", float: "a number", str: "text", bool: "true or false", SecretStr: "text"}
_BOUNDS = {"ge": "at least", "gt": "more than", "le": "at most", "lt": "less than", "pattern": "matching"}
_UNION_TAGS = {"int", "float", "str", "bool", "constrained-int", "constrained-float", "constrained-str"}


def check_settings(model: type[BaseModel], value: object) -> list[Finding]:
    """Everything that keeps `value` from becoming a `model`; paths start at `value`.

    A value that is a `model` already has no faults. `true` is not taken for the number 1.
    """
    if isinstance(value, model):
        return []
    if not isinstance(value, Mapping):
        return [Finding((), "must be a mapping of keys to values", show((), value))]
    found = [*_odd_keys(value), *_booleans_for_numbers(model, value)]
    try:
        model.model_validate(dict(value))
    except ValidationError as error:
        found += [_finding(model, e) for e in error.errors()]
    return list({finding.path: finding for finding in reversed(found)}.values())[::-1]


def describe(field: FieldInfo) -> str:
    """What a field takes, in words: type, choices and bounds."""
    return " ".join([_describe_type(field.annotation), *_describe_bounds(field.metadata)])


def _describe_bounds(metadata: Sequence[Any]) -> list[str]:
    sources = [inner for part in metadata for inner in (part.metadata if isinstance(part, FieldInfo) else [part])]
    found = [(phrase, getattr(source, name, None)) for source in sources for name, phrase in _BOUNDS.items()]
    words = [f"{phrase} {bound}" for phrase, bound in found if bound is not None]
    return [", ".join(words)] if words else []


def field_at(model: type[BaseModel], path: KeyPath) -> FieldInfo | None:
    """The field that `path` leads to; None when it leads elsewhere (into a free mapping, or nowhere)."""
    current: type[BaseModel] | None = model
    field: FieldInfo | None = None
    for key in path:
        if isinstance(key, int):
            continue
        field = current.model_fields.get(key) if current is not None else None
        if field is None:
            return None
        current = _model_in(field.annotation)
    return field


def _finding(model: type[BaseModel], error: ErrorDetails) -> Finding:
    path = _path_of(model, error["loc"])
    if error["type"] == "extra_forbidden":
        parent = _model_at(model, path[:-1])
        return unknown_key(path, error["input"], parent.model_fields if parent is not None else ())
    field = field_at(model, path)
    allowed = None if field is None or not path else describe(field)
    if error["type"] == "missing":
        return Finding(path, "is required", None, allowed)
    problem = error["msg"].removeprefix("Value error, ")
    if not path:  # a rule about several keys names their values itself
        return Finding(path, problem)
    return Finding(path, problem[:1].lower() + problem[1:], show(path, error["input"]), allowed)


def _path_of(model: type[BaseModel], location: KeyPath) -> KeyPath:
    """`location` without the names of union members that pydantic appends to it."""
    path = location
    while len(path) > 1 and _is_union_tag(path[-1]) and field_at(model, path) is None:
        path = path[:-1]
    return path


def _is_union_tag(key: str | int) -> bool:
    return key in _UNION_TAGS or str(key).startswith("literal[")


def _model_at(model: type[BaseModel], path: KeyPath) -> type[BaseModel] | None:
    if not any(isinstance(key, str) for key in path):
        return model
    field = field_at(model, path)
    return None if field is None else _model_in(field.annotation)


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """The only model within an annotation, looking through Annotated, unions and sequences."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if get_origin(annotation) in (dict, Mapping):
        return None
    return next((found for part in get_args(annotation) if (found := _model_in(part)) is not None), None)


def _describe_type(annotation: Any) -> str:
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return " ".join([_describe_type(parts[0]), *_describe_bounds(parts[1:])])
    if origin is Literal:
        return " or ".join(str(part) for part in parts)
    if origin in (Union, types.UnionType):
        return " or ".join(_describe_type(part) for part in parts if part is not type(None))
    if origin in (list, tuple):
        return f"a list of {_describe_type(parts[0])}" if parts else "a list"
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return " or ".join(str(member.value) for member in annotation)
    return _NAMES.get(annotation, "a mapping of keys to values")


def _odd_keys(value: Mapping[object, object], path: KeyPath = ()) -> Iterator[Finding]:
    """Keys that are no text: YAML reads ``on:`` and ``1:`` as something else, and pydantic raises at them."""
    for key, inner in value.items():
        if not isinstance(key, str):
            yield Finding((*path, str(key)), "a key must be text", show(path, key), None, "Put it in quotes.")
        elif isinstance(inner, Mapping):
            yield from _odd_keys(inner, (*path, key))


def _booleans_for_numbers(model: type[BaseModel], value: Mapping[str, object]) -> Iterator[Finding]:
    for name, inner in value.items():
        field = model.model_fields.get(name) if isinstance(name, str) else None
        if field is None:
            continue
        nested = _model_in(field.annotation)
        if isinstance(inner, bool) and _takes_numbers_only(field.annotation):
            yield Finding((name,), "must be a number", show((name,), inner), describe(field))
        elif nested is not None and isinstance(inner, Mapping):
            deeper = _booleans_for_numbers(nested, cast("Mapping[str, object]", inner))
            yield from (finding.under((name,)) for finding in deeper)


def _takes_numbers_only(annotation: Any) -> bool:
    parts = _plain_types(annotation)
    return bool(parts & {int, float}) and bool not in parts


def _plain_types(annotation: Any) -> set[Any]:
    parts = get_args(annotation)
    if not parts or get_origin(annotation) is Literal:
        return {annotation}
    inner = parts[:1] if get_origin(annotation) is Annotated else parts
    return set().union(*(_plain_types(part) for part in inner))
