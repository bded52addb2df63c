"""Answers that the real model gave, and what n-grams propose at every place in them."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from outrider_draft.config import LookupBounds
from outrider_draft.ngram_proposer import NgramProposer
from outrider_draft.proposer import Context, ProposalRequest, SessionFacts
from outrider_wire.drafting import CloseOutcome

_HASH_SEED = 1


@dataclass(frozen=True, slots=True)
class RecordedAnswer:
    """A prompt and what the model said to it, greedily."""

    kind: str
    """What the answer is like: copy, chat, code or list."""
    prompt_ids: tuple[int, ...]
    answer_ids: tuple[int, ...]


def read_answers(file: Path) -> list[RecordedAnswer]:
    """What `benchmarks/control/record_tables.py answers` wrote."""
    return [
        RecordedAnswer(entry["kind"], tuple(entry["prompt_ids"]), tuple(entry["answer_ids"]))
        for entry in json.loads(file.read_text("utf-8"))["answers"]
    ]


class Fate(NamedTuple):
    """Of a proposal of full depth, in ids."""

    proposed: int
    accepted: int


class NgramFates:
    """How the proposal of an n-gram pool fares after any number of ids of an answer. Computed once each.

    Args:
        depth: ids that are asked for.
    """

    def __init__(self, depth: int) -> None:
        self.depth = depth
        self._proposer = NgramProposer(LookupBounds(2, 5), _HASH_SEED)
        self._proposer.warm_up()
        self._handles = itertools.count(1)
        self._fates: dict[tuple[RecordedAnswer, int], Fate] = {}

    def after(self, answer: RecordedAnswer, said: int) -> Fate:
        """When `said` ids of the answer are committed."""
        if (answer, said) not in self._fates:
            proposed = self._proposed(answer, said)
            right = answer.answer_ids[said : said + len(proposed)]
            agrees = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(proposed, right, strict=False))
            self._fates[answer, said] = Fate(len(proposed), sum(1 for _ in agrees))
        return self._fates[answer, said]

    def _proposed(self, answer: RecordedAnswer, said: int) -> Sequence[int]:
        handle = next(self._handles)
        ids = np.asarray([*answer.prompt_ids, *answer.answer_ids[:said]], np.int32)
        facts = SessionFacts(
            handle, len(answer.prompt_ids), self.depth, seed=0, temperature=0.0, top_k=0, top_p=1.0, tenant=""
        )
        context = Context(handle, ids)
        self._proposer.open([facts])
        self._proposer.commit([context])
        (proposed,) = self._proposer.propose([ProposalRequest(context, self.depth)])
        self._proposer.close(handle, CloseOutcome.FINISHED)
        return proposed.token_ids
