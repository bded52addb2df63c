"""How proposals fare over answers that are known: the rounds of an engine, played without it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from outrider_draft.proposer import Context, ProposalRequest, Proposer, SessionFacts
from outrider_wire.drafting import CloseOutcome


class Outcome(NamedTuple):
    """How one wish of full depth fared, in ids."""

    proposed: int
    accepted: int


@dataclass(frozen=True, slots=True)
class Answer:
    """A prompt and what the model said to it, greedily."""

    kind: str
    """What the answer is like: copy, chat, code or list."""
    prompt_ids: tuple[int, ...]
    answer_ids: tuple[int, ...]


Outcomes = Mapping[str, Counter[Outcome]]
"""Rounds by kind of prompt and outcome."""


def drafted(answers: Sequence[Answer], make: Callable[[], Proposer], depth: int, repeats: bool) -> Outcomes:
    """Outcomes of all rounds in which answers would come about with drafts of the greatest depth.

    Args:
        answers: to play, one after the other.
        make: makes the proposer.
        depth: ids asked for in each round; fewer only where an answer has fewer left.
        repeats: whether all answers were given before, to a proposer that remembers them.
    """
    proposer = make()
    proposer.warm_up()
    handles = iter(range(1, 1 + 2 * len(answers)))
    if repeats:
        for answer in answers:
            _play(answer, proposer, next(handles), depth)
    found: dict[str, Counter[Outcome]] = {}
    for answer in answers:
        # Otherwise nothing is remembered: every answer is the first one.
        asked = proposer if repeats else make()
        found.setdefault(answer.kind, Counter()).update(_play(answer, asked, next(handles), depth))
    return found


def _play(answer: Answer, proposer: Proposer, handle: int, depth: int) -> list[Outcome]:
    """One answer. Its first id comes out of the prompt, as the engine does it."""
    text = np.asarray([*answer.prompt_ids, *answer.answer_ids], np.int32)
    length = len(answer.prompt_ids) + 1
    facts = SessionFacts(handle, len(answer.prompt_ids), depth, seed=0, temperature=0.0, top_k=0, top_p=1.0, tenant="")
    proposer.open([facts])
    outcomes = []
    while length < len(text):
        context = Context(handle, text[:length])
        proposer.commit([context])
        limit = min(depth, len(text) - length - 1)
        outcome = _outcome(proposer, context, text, limit) if limit > 0 else None
        if outcome is not None and limit == depth:
            outcomes.append(outcome)  # shorter ones would look like proposals that end early
        length += 1 + (outcome.accepted if outcome is not None else 0)
    proposer.commit([Context(handle, text)])
    proposer.close(handle, CloseOutcome.FINISHED)
    return outcomes


def _outcome(proposer: Proposer, context: Context, text: np.typing.NDArray[np.int32], depth: int) -> Outcome:
    (proposed,) = proposer.propose([ProposalRequest(context, depth)])
    start = len(context.token_ids)
    right = text[start : start + len(proposed.token_ids)].tolist()
    pairs = zip(proposed.token_ids, right, strict=True)
    wrong = next((place for place, (mine, true) in enumerate(pairs) if mine != true), len(right))
    return Outcome(len(right), wrong)
