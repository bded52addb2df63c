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
from outrider_cluster.config.wording import kind_wanted_by, problem_of
from outrider_runtime.errors import shorten
from outrider_runtime.settings import parse_bytes

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
    found = [*_booleans_for_numbers(model, value)]
    try:
        model.model_validate(dict(value))
    except ValidationError as error:
        found += [_finding(model, e) for e in error.errors()]
    return list({finding.path: finding for finding in reversed(found)}.values())[::-1]


def describe(field: FieldInfo) -> str:
    """What a field takes, in words: type, choices and bounds."""
    is_size = any(getattr(part, "func", None) is parse_bytes for part in field.metadata)
    kind = "a number of bytes or a size such as 512MiB," if is_size else _describe_type(field.annotation)
    return " ".join([kind, *_describe_bounds(field.metadata)])


def _describe_bounds(metadata: Sequence[Any]) -> list[str]:
    sources = [inner for part in metadata for inner in (part.metadata if isinstance(part, FieldInfo) else [part])]
    found = [(phrase, getattr(source, name, None)) for source in sources for name, phrase in _BOUNDS.items()]
    words = [f"{phrase} {bound}" for phrase, bound in found if bound is not None]
    lengths = [getattr(source, "min_length", None) for source in sources]
    words += [f"of at least {least} character{'s' * (least > 1)}" for least in lengths if least]
    return [", ".join(words)] if words else []


def field_at(model: type[BaseModel], path: KeyPath) -> FieldInfo | None:
    """The field that `path` leads to; None when it leads elsewhere (into a free mapping, or nowhere).

    A name in a mapping of names to settings belongs to the field of the mapping, as a place in a list does.
    """
    current: type[BaseModel] | None = model
    field: FieldInfo | None = None
    names_follow = False
    for key in path:
        if isinstance(key, int) or names_follow:
            names_follow = False
            continue
        field = current.model_fields.get(key) if current is not None else None
        if field is None:
            return None
        current = model_in(field.annotation)
        names_follow = current is not None and _is_mapping(field.annotation)
    return field


def _finding(model: type[BaseModel], error: ErrorDetails) -> Finding:
    if error["type"] == "invalid_key" or error["loc"][-1:] == ("[key]",):
        return _key_that_is_no_text(error)
    path = _path_of(model, error["loc"])
    if error["type"] == "extra_forbidden":
        parent = _model_at(model, path[:-1])
        return unknown_key(path, error["input"], parent.model_fields if parent is not None else ())
    field = field_at(model, path)
    allowed = None if field is None or not path else describe(field)
    if error["type"] == "missing":
        return Finding(path, "is required", None, allowed)
    if error["type"] == "value_error":
        is_rule = not path or isinstance(error["input"], Mapping)  # about several keys: it names their values itself
        return Finding(path, problem_of(error), None if is_rule else show(path, error["input"]))
    if field is None or isinstance(path[-1], int):  # within a list or a free mapping: the field around it says nothing
        allowed = kind_wanted_by(error) or allowed
    return Finding(path, problem_of(error), show(path, error["input"]), allowed)


def _key_that_is_no_text(error: ErrorDetails) -> Finding:
    """YAML reads ``on:`` and ``1:`` as something else than text. Such a key is written as YAML spells it."""
    path = (*error["loc"][:-1], shorten(error["input"]).strip('"'))
    return Finding(path, "a key must be text", None, None, "Put it in quotes.")


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
    return None if field is None else model_in(field.annotation)


def model_in(annotation: Any) -> type[BaseModel] | None:
    """The only model within an annotation, looking through Annotated, unions, sequences and values of mappings."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in get_args(annotation) if (found := model_in(part)) is not None), None)


def _is_mapping(annotation: Any) -> bool:
    return get_origin(annotation) in (dict, Mapping)


def _describe_type(annotation: Any) -> str:
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return " ".join([_describe_type(parts[0]), *_describe_bounds(parts[1:])])
    if origin is Literal:
        return " or ".join(str(part) for part in parts)
    if origin in (Union, types.UnionType):
        return " or ".join(_describe_type(part) for part in parts if part is not type(None))
    if origin in (list, tuple):
        return f"a list, each entry {_describe_type(parts[0])}" if parts else "a list"
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return " or ".join(str(member.value) for member in annotation)
    return _NAMES.get(annotation, "a mapping of keys to values")


def _booleans_for_numbers(model: type[BaseModel], value: Mapping[str, object]) -> Iterator[Finding]:
    for name, inner in value.items():
        field = model.model_fields.get(name) if isinstance(name, str) else None
        if field is None:
            continue
        nested = model_in(field.annotation)
        if isinstance(inner, bool) and _takes_numbers_only(field.annotation):
            yield Finding((name,), "must be a number", show((name,), inner), describe(field))
        elif nested is not None and isinstance(inner, Mapping):
            named = _is_mapping(field.annotation)
            parts = {(name, key): part for key, part in inner.items()} if named else {(name,): inner}
            for place, part in parts.items():
                if isinstance(part, Mapping):
                    deeper = _booleans_for_numbers(nested, cast("Mapping[str, object]", part))
                    yield from (finding.under(place) for finding in deeper)


def _takes_numbers_only(annotation: Any) -> bool:
    parts = _plain_types(annotation)
    return bool(parts & {int, float}) and bool not in parts


def _plain_types(annotation: Any) -> set[Any]:
    parts = get_args(annotation)
    if not parts or get_origin(annotation) is Literal:
        return {annotation}
    inner = parts[:1] if get_origin(annotation) is Annotated else parts
    return set().union(*(_plain_types(part) for part in inner))
