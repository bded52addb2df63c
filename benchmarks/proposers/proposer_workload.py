"""The proposers that are measured, and texts for them: phrases in random order, as answers that repeat themselves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from outrider_draft.config import LookupBounds
from outrider_draft.ngram_proposer import NgramProposer
from outrider_draft.proposer import IdArray, Proposer, SessionFacts
from outrider_draft.suffix_corpus import fit_corpus
from outrider_draft.suffix_proposer import Remembering, SuffixProposer
from outrider_draft.suffix_rules import SuffixRules

PROMPT_IDS = 64
_VOCAB_SIZE = 49152
_PHRASES, _PHRASE_IDS = 32, 48
_HASH_SEED = 1


@dataclass(frozen=True, slots=True)
class Method:
    """A proposer by name, made anew for each measurement."""

    name: str
    make: Callable[[], Proposer]


def methods(corpus_bytes: int) -> tuple[Method, ...]:
    """The proposers with their defaults, but for the budget of the corpus."""

    def make_suffix() -> Proposer:
        remembering = Remembering(fit_corpus(corpus_bytes, max_documents=1 << 24))
        return SuffixProposer(SuffixRules(24, 1.0, 0.1), remembering, _HASH_SEED)

    return Method("ngram", lambda: NgramProposer(LookupBounds(2, 5), _HASH_SEED)), Method("suffix", make_suffix)


class Texts:
    """Texts over phrases of their own, the same ones for the same seed."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)
        self._phrases = self._random.integers(0, _VOCAB_SIZE, (_PHRASES, _PHRASE_IDS)).astype(np.int32)

    def text(self, length: int) -> IdArray:
        """Phrases in random order, [length] int32."""
        count = 1 + length // _PHRASE_IDS
        text: IdArray = self._phrases[self._random.integers(0, _PHRASES, count)].reshape(-1)[:length]
        return text


def facts(handle: int) -> SessionFacts:
    """A greedy session."""
    return SessionFacts(handle, PROMPT_IDS, 64, seed=0, temperature=0.0, top_k=0, top_p=1.0, tenant="")
