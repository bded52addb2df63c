"""How long a proposer takes to take in one id a session and to propose, at a length and a batch size."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from outrider_draft.proposer import Context, ProposalRequest
from outrider_wire.drafting import CloseOutcome
from proposer_workload import Method, Texts, facts

DEPTH = 8
_CORPUS_IDS = 64 * 1024
"""Finished outputs that are there before."""
_OUTPUT_IDS = 1024


class Load(NamedTuple):
    """Committed ids of each session, and sessions in a batch."""

    context_ids: int
    batch: int


@dataclass(frozen=True, slots=True)
class Timing:
    """What was measured."""

    method: str
    load: Load
    propose_us: tuple[float, float]
    """Median and 99th percentile of a batch."""
    append_us: tuple[float, float]
    """The same for taking in one id of each session."""
    proposed_ids: float
    """Ids proposed to a session, on average."""
    bytes_per_id: float
    """Memory of a session for each of its ids, as the worker reckons it, without the ids themselves."""


def measure(method: Method, load: Load, steps: int) -> Timing:
    """Grow sessions id by id and propose after each one."""
    proposer, texts = method.make(), Texts(seed=load.context_ids)
    proposer.warm_up()
    for _ in range(_CORPUS_IDS // _OUTPUT_IDS):
        proposer.open([facts(0)])
        proposer.commit([Context(0, texts.text(_OUTPUT_IDS))])
        proposer.close(0, CloseOutcome.FINISHED)
    sessions = [texts.text(load.context_ids + steps) for _ in range(load.batch)]
    proposer.open([facts(handle) for handle in range(load.batch)])
    proposer.commit([Context(handle, ids[: load.context_ids]) for handle, ids in enumerate(sessions)])
    append_s, propose_s, proposed = np.empty(steps), np.empty(steps), 0
    for step in range(steps):
        end = load.context_ids + step + 1
        contexts = [Context(handle, ids[:end]) for handle, ids in enumerate(sessions)]
        requests = [ProposalRequest(context, DEPTH) for context in contexts]
        begin = time.perf_counter()
        proposer.commit(contexts)
        between = time.perf_counter()
        answers = proposer.propose(requests)
        append_s[step], propose_s[step] = between - begin, time.perf_counter() - between
        proposed += sum(len(answer.token_ids) for answer in answers)
    return Timing(
        method.name,
        load,
        _percentiles_us(propose_s),
        _percentiles_us(append_s),
        proposed / (steps * load.batch),
        proposer.state_bytes(load.context_ids) / load.context_ids,
    )


def _percentiles_us(seconds: np.ndarray) -> tuple[float, float]:
    median, most = np.percentile(seconds * 1e6, [50, 99])
    return float(median), float(most)
