"""The exception tree. Every error a user can meet is one of these; each is mapped once to gRPC and to HTTP.

OutriderError
├── InvalidRequest        a request outside its limits            400 / INVALID_ARGUMENT
├── UnknownModel          the request names another model          404 / NOT_FOUND
├── Unauthenticated       no or a wrong credential                 401 / UNAUTHENTICATED
├── Overloaded            queues are full, retry later             429 / RESOURCE_EXHAUSTED
├── NotReady              nothing can serve this yet               503 / UNAVAILABLE
│   └── RanksLost         a process that shares the model is gone
├── DeadlineExceeded      the caller's deadline passed             504 / DEADLINE_EXCEEDED
├── Mismatch              two sides disagree (both values named)   409 / FAILED_PRECONDITION
├── ModelRefused          a model folder that we do not load       (start-up)
├── InvalidConfig         a config that is refused                 (start-up)
└── EngineFailed          the target cannot go on                  500 / INTERNAL
"""

from __future__ import annotations

import json

from outrider_runtime.printable import printable


class OutriderError(Exception):
    """Root of all errors raised by Outrider on purpose."""


class InvalidRequest(OutriderError):
    """A request field is outside its bounds.

    Args:
        field: path of the field as the client wrote it, for example ``sampling.top_p``.
        value: the offending value (shortened in the message).
        allowed: what would have been accepted, in words.
    """

    def __init__(self, field: str, value: object, allowed: str) -> None:
        self.field = field
        self.value = value
        self.allowed = allowed
        super().__init__(f"{field}: got {shorten(value)}, allowed: {allowed}")


class UnknownModel(OutriderError):
    """The request names a model that is not served here."""


class Unauthenticated(OutriderError):
    """The caller gave no credential or a wrong one."""


class Overloaded(OutriderError):
    """No room for another request now; `retry_after_s` says when to try again."""

    def __init__(self, message: str, retry_after_s: float = 1.0) -> None:
        self.retry_after_s = retry_after_s
        super().__init__(message)


class NotReady(OutriderError):
    """Nothing is able to serve the request yet (loading, draining, or lost)."""


class DeadlineExceeded(OutriderError):
    """The caller's deadline passed before the work was done."""


class Mismatch(OutriderError):
    """Verifier and draft worker disagree about a value that must be equal on both sides."""

    def __init__(self, what: str, ours: object, theirs: object) -> None:
        self.what = what
        self.ours = ours
        self.theirs = theirs
        super().__init__(f"{what} differs: verifier has {ours}, draft worker has {theirs}")


class ModelRefused(OutriderError):
    """A model folder that we do not load, with the reason and the file or setting that caused it."""


class InvalidConfig(OutriderError):
    """A configuration that is refused before anything is started."""


class EngineFailed(OutriderError):
    """The target engine cannot continue; its replica is to be replaced."""


class RanksLost(NotReady):
    """A process that holds a part of the model is gone or silent. Its target is replaced; others serve meanwhile."""


class Words(str):
    """Says in words what was found, where there is no value to quote (``512 tokens``). Written as it is."""

    __slots__ = ()


def shorten(value: object, limit: int = 80) -> str:
    """`value` as JSON spells it, cut to `limit` characters so that a hostile value cannot flood a log or a reply.

    Characters that cannot be seen are written as escapes. What JSON has no spelling for is written as Python does.
    """
    if isinstance(value, Words):
        return _cut(value, limit)
    text = ""
    try:
        for piece in _ENCODER.iterencode(value):  # stops early: neither long nor deep values are spelled to their end
            text += piece
            if len(text) > limit:
                break
    except TypeError:  # a key of a mapping that JSON cannot have
        text = repr(value)
    return _cut(text, limit)


_ENCODER = json.JSONEncoder(ensure_ascii=False, default=str)


def _cut(text: str, limit: int) -> str:
    shown = printable(text[: limit + 1])
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"
