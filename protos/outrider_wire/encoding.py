"""Values that do not fit into the messages that are to carry them, by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from outrider_runtime.errors import InvalidRequest

_MISFIT = (ValueError, TypeError, OverflowError)
"""What protobuf raises: the first for numbers out of range and text that is no Unicode, the others for other types."""

_RULES = {
    FieldDescriptor.TYPE_INT32: "-2^31 to 2^31 - 1",
    FieldDescriptor.TYPE_UINT32: "0 to 2^32 - 1",
    FieldDescriptor.TYPE_UINT64: "0 to 2^64 - 1",
    FieldDescriptor.TYPE_STRING: "Unicode text without lone surrogates",
    FieldDescriptor.TYPE_BOOL: "true or false",
}


@contextmanager
def misfits_named(kind: type[Message], values: object, names: Mapping[str, str] | None = None) -> Iterator[None]:
    """Wraps the encoding of `values` as a message of `kind`. Costs nothing while they fit.

    Args:
        kind: a generated message class.
        values: a dataclass whose attributes are called as the fields are.
        names: attributes that are called otherwise, by field.

    Raises:
        InvalidRequest: a value does not fit; it is named as the attribute is.
    """
    try:
        yield
    except _MISFIT as error:
        for misfit in _misfits(kind, values, names or {}, ""):
            raise InvalidRequest(misfit.path, misfit.value, misfit.rule) from error
        raise  # an error of ours: every value by itself would fit


@dataclass(frozen=True, slots=True)
class _Misfit:
    path: str
    value: object
    rule: str


def _misfits(kind: type[Message], values: object, names: Mapping[str, str], prefix: str) -> Iterator[_Misfit]:
    for field in kind.DESCRIPTOR.fields:
        value = getattr(values, names.get(field.name, field.name), None)
        path = prefix + names.get(field.name, field.name)
        if value is None or field.enum_type is not None:
            continue  # absent, or one of our own enums, all members of which fit
        if field.message_type is None:
            yield from _scalar_misfits(kind, field.name, value, path)
        elif isinstance(value, Mapping):
            continue  # counts by pool, which only servers send
        elif not field.is_repeated:
            yield from _message_misfits(type(getattr(kind(), field.name)), value, path)
        else:
            row_kind = type(getattr(kind(), field.name).add())
            for at, row in enumerate(value):
                yield from _message_misfits(row_kind, row, f"{path}[{at}]")


def _message_misfits(kind: type[Message], value: object, path: str) -> Iterator[_Misfit]:
    if isinstance(value, Sequence):  # ids, which have a message of their own so that none and absent can be told apart
        yield from _scalar_misfits(kind, "ids", value, path)
    else:
        yield from _misfits(kind, value, {}, f"{path}.")


def _scalar_misfits(kind: type[Message], name: str, value: object, path: str) -> Iterator[_Misfit]:
    field = kind.DESCRIPTOR.fields_by_name[name]
    rule = _RULES.get(field.type, "a number")
    if not field.is_repeated:
        if not _fits(kind, name, value):
            yield _Misfit(path, value, rule)
    elif isinstance(value, Sequence):
        yield from (_Misfit(f"{path}[{at}]", one, rule) for at, one in enumerate(value) if not _fits(kind, name, [one]))


def _fits(kind: type[Message], name: str, value: object) -> bool:
    try:
        kind(**{name: value})
    except _MISFIT:
        return False
    return True
