"""Memory of the process while many requests come and go."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from outrider_draft.proposer import Context, RemembersOutputs
from outrider_draft.resident_memory import resident_bytes
from outrider_wire.drafting import CloseOutcome
from proposer_workload import PROMPT_IDS, Method, Texts, facts

OUTPUT_IDS = 256
_TEXTS = 64
_LOOKS = 5


@dataclass(frozen=True, slots=True)
class Memory:
    """What was there after so many requests."""

    method: str
    requests: int
    grown_bytes: int
    """Resident memory beyond that before the first request."""
    remembered: int
    """Finished outputs remembered."""
    reserved_bytes: int
    """Memory of the corpus, as the worker reckons it."""


def watch(method: Method, requests: int) -> Iterator[Memory]:
    """Serve requests one after the other, and look a few times."""
    proposer, texts = method.make(), Texts(seed=2)
    proposer.warm_up()
    pool = [texts.text(PROMPT_IDS + OUTPUT_IDS) for _ in range(_TEXTS)]
    before = resident_bytes()
    looks = {requests * look // _LOOKS for look in range(1, _LOOKS + 1)}
    for number in range(1, requests + 1):
        proposer.open([facts(number)])
        proposer.commit([Context(number, pool[number % _TEXTS])])
        proposer.close(number, CloseOutcome.FINISHED)
        if number in looks:
            corpus = proposer.corpus_facts() if isinstance(proposer, RemembersOutputs) else None
            remembered, reserved = (corpus.documents, corpus.held_bytes) if corpus is not None else (0, 0)
            yield Memory(method.name, number, resident_bytes() - before, remembered, reserved)
