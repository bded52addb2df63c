"""A user's proposer: found by its path, made, and asked at the start what could go wrong later.

Runs code of whoever wrote the config, in the worker's process. What it raises while it serves is contained by
`guarded_proposer`, how long it takes by `batcher`. None of it is called on the event loop.
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import TypeVar

from outrider_draft.base_proposer import ProposerSetup
from outrider_draft.error_words import words_of
from outrider_draft.proposer import Context, ProposalRequest, ProposedTokens, Proposer, SessionFacts
from outrider_runtime.errors import InvalidConfig, shorten
from outrider_wire.drafting import CloseOutcome

_LENGTH_BITS = 24
"""`state_bytes` is asked for lengths up to 2 to this power; beyond it grows in proportion."""
_METHODS = ("warm_up", "open", "commit", "propose", "close", "state_bytes")
_FROM_USERS = (Exception, SystemExit, asyncio.CancelledError, GeneratorExit, BaseExceptionGroup)
"""What code of users may raise while a worker starts: anything but an interrupt of the process."""
_IMPORT_FIX = "install it where workers run, or name its folder in the application's runtime_env (docs/proposers.md)"
_R = TypeVar("_R")


class CustomProposer:
    """Hands every call on to the user's object.

    Args:
        path: `package.module.Class`.
        setup: what the class is made with.

    Raises:
        InvalidConfig: there is no such class, it fails when made, or what it makes is no proposer.
    """

    def __init__(self, path: str, setup: ProposerSetup) -> None:
        self._path = path
        make = _find(path)
        self._proposer: Proposer = self._ask("the constructor", lambda: make(setup))
        missing = [name for name in _METHODS if not callable(getattr(self._proposer, name, None))]
        if missing:
            raise InvalidConfig(f"model: {path} has no method {', '.join(missing)}")
        self._weight_version = self._ask("weight_version", lambda: self._proposer.weight_version)
        if not isinstance(self._weight_version, str):
            raise InvalidConfig(f"model: {path}.weight_version is {shorten(self._weight_version)}, allowed: text")
        sizes = (self._bytes_of(1 << bits) for bits in range(_LENGTH_BITS + 1))
        self._state_bytes = list(accumulate(sizes, max))

    @property
    def weight_version(self) -> str:
        """What the user's object said at the start."""
        return self._weight_version

    def warm_up(self) -> None:
        """Warm the user's object up.

        Raises:
            InvalidConfig: it failed.
        """
        self._ask("warm_up", self._proposer.warm_up)

    def open(self, sessions: Sequence[SessionFacts]) -> None:
        """Hand on."""
        self._proposer.open(tuple(sessions))

    def commit(self, contexts: Sequence[Context]) -> None:
        """Hand on."""
        self._proposer.commit(tuple(contexts))

    def propose(self, batch: Sequence[ProposalRequest]) -> Sequence[ProposedTokens]:
        """Hand on; what comes back is untrusted."""
        return self._proposer.propose(tuple(batch))

    def close(self, handle: int, outcome: CloseOutcome) -> None:
        """Hand on."""
        self._proposer.close(handle, outcome)

    def state_bytes(self, length: int) -> int:
        """What the user's object said at the start of the next power of two."""
        bits = max(0, length - 1).bit_length()
        if bits <= _LENGTH_BITS:
            return self._state_bytes[bits]
        return self._state_bytes[-1] << (bits - _LENGTH_BITS)

    def _bytes_of(self, length: int) -> int:
        size = self._ask(f"state_bytes({length})", lambda: self._proposer.state_bytes(length))
        if type(size) is not int or size < 0:
            raise InvalidConfig(f"model: {self._path}.state_bytes({length}) is {shorten(size)}, allowed: at least 0")
        return size

    def _ask(self, what: str, call: Callable[[], _R]) -> _R:
        try:
            return call()
        except _FROM_USERS as error:
            raise InvalidConfig(f"model: {self._path}: {what} failed: {words_of(error)}") from error


def _find(path: str) -> Callable[[ProposerSetup], Proposer]:
    module, _, name = path.rpartition(".")
    try:
        found = getattr(importlib.import_module(module), name)
    except _FROM_USERS as error:
        fix = f"; {_IMPORT_FIX}" if isinstance(error, ImportError) else ""
        raise InvalidConfig(f"model: {path} cannot be imported: {words_of(error)}{fix}") from error
    if not isinstance(found, type):
        raise InvalidConfig(f"model: {path} is {shorten(found)}, allowed: a class")
    make: Callable[[ProposerSetup], Proposer] = found
    return make
