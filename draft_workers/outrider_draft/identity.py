"""What a draft worker says of itself, and the check of a verifier that introduces itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from outrider_runtime.errors import InvalidRequest, Mismatch
from outrider_wire.drafting import PROTOCOL_VERSION, Hello

_MAX_INCARNATION_CHARACTERS = 64


@dataclass(frozen=True, slots=True)
class WorkerIdentity:
    """The tokenizer that a worker drafts for: its fingerprint, and the number of ids (at least 1)."""

    tokenizer_fingerprint: str
    vocab_size: int
    encode: Callable[[Iterable[str]], Iterable[Sequence[int]]] | None = field(default=None, compare=False)
    """Turns texts into ids; None where the tokenizer is not at hand."""


def check_verifier(theirs: Hello, ours: Hello) -> None:
    """Accept a verifier's introduction.

    Args:
        theirs: what the verifier said.
        ours: what this worker says. An empty weight version is not compared.

    Raises:
        Mismatch: a value that must be equal on both sides is not; both are named.
        InvalidRequest: the incarnation or the lease is out of bounds.
    """
    _check_equal("protocol_version", theirs.protocol_version, PROTOCOL_VERSION)
    _check_equal("tokenizer_fingerprint", theirs.tokenizer_fingerprint, ours.tokenizer_fingerprint)
    _check_equal("vocab_size", theirs.vocab_size, ours.vocab_size)
    if ours.weight_version:
        _check_equal("weight_version", theirs.weight_version, ours.weight_version)
    if not 1 <= len(theirs.incarnation) <= _MAX_INCARNATION_CHARACTERS:
        allowed = f"1 to {_MAX_INCARNATION_CHARACTERS} characters"
        raise InvalidRequest("hello.incarnation", theirs.incarnation, allowed)
    if theirs.lease_ms < 1:
        raise InvalidRequest("hello.lease_ms", theirs.lease_ms, "at least 1")


def _check_equal(what: str, verifier: object, worker: object) -> None:
    if verifier != worker:
        raise Mismatch(what, verifier, worker)
