"""Through whole requests, the tokens that verification emits follow the target's law, and only speed depends on drafts.

A toy target of five tokens, whose logits depend on the whole prefix, answers 200 000 requests of three tokens. Every
one of the 125 answers has its exact probability.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from scipy.stats import chisquare

from outrider_kernels.contracts import SamplingRows, VerifyRows
from outrider_kernels.verify import verify

VOCAB_SIZE = 5
LENGTH = 3
NUM_REQUESTS = 200_000
PROMPT_LENGTH = 11


@dataclass(frozen=True)
class Law:
    """Sampling parameters, spelled out once more in plain floats."""

    temperature: float
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0

    def probabilities(self, logits: np.ndarray) -> list[float]:
        """Of one position, filtered."""
        weights = [math.exp(float(logit) / self.temperature) for logit in logits]
        order = sorted(range(VOCAB_SIZE), key=lambda v: (-logits[v], v))
        kept = [v for v in order if weights[v] >= self.min_p * max(weights)]
        kept = kept[: self.top_k] if self.top_k else kept
        total, before, nucleus = sum(weights[v] for v in kept), 0.0, []
        for v in kept:
            if before < self.top_p * total:
                nucleus.append(v)
            before += weights[v]
        total = sum(weights[v] for v in nucleus)
        return [weights[v] / total if v in nucleus else 0.0 for v in range(VOCAB_SIZE)]

    def sampling(self, count: int, first_seed: int) -> SamplingRows:
        """The same for `count` requests."""
        return SamplingRows(
            np.full(count, self.temperature),
            np.full(count, self.top_k, np.int32),
            np.full(count, self.top_p),
            np.full(count, self.min_p),
            np.arange(first_seed, first_seed + count, dtype=np.uint64),
        )


class ToyTarget:
    """Logits for each of the 1 + 5 + 25 prefixes of fewer than three tokens."""

    def __init__(self) -> None:
        self.table = (np.random.default_rng(3).standard_normal((31, VOCAB_SIZE)) * 1.2).astype(np.float32)

    def logits(self, tokens: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """[B, 5] after the first `lengths` of `tokens` [B, 3]."""
        first = np.array([0, 1, 6])[lengths]
        code = np.where(lengths == 2, tokens[:, 0] * VOCAB_SIZE + tokens[:, 1], np.where(lengths == 1, tokens[:, 0], 0))
        return self.table[first + code]

    def joint(self, law: Law) -> np.ndarray:
        """[125] exact probability of every answer."""
        result = []
        for answer in itertools.product(range(VOCAB_SIZE), repeat=LENGTH):
            probability = 1.0
            for length in range(LENGTH):
                row = self.logits(np.array([answer]), np.array([length]))[0]
                probability *= law.probabilities(row)[answer[length]]
            result.append(probability)
        return np.array(result)


def decode(target: ToyTarget, sampling: SamplingRows, drafts: np.ndarray | None) -> np.ndarray:
    """Answers [B, 3]; with drafts [B, 3], in rounds whose depth changes from row to row and round to round."""
    count = len(sampling.seed)
    source = np.random.default_rng(8)
    answers, lengths = np.zeros((count, LENGTH), np.int64), np.zeros(count, np.int64)
    while np.any(lengths < LENGTH):
        active = np.flatnonzero(lengths < LENGTH)
        left = LENGTH - lengths[active]
        depths = source.integers(0, left) if drafts is not None else np.zeros(len(active), np.int64)
        guesses = answers.copy() if drafts is None else np.where(np.arange(LENGTH) < lengths[:, None], answers, drafts)
        starts = np.concatenate([[0], np.cumsum(depths + 1)])
        owner = np.repeat(active, depths + 1)
        step = np.arange(starts[-1]) - np.repeat(starts[:-1], depths + 1)
        places = lengths[owner] + step
        logits = target.logits(guesses[owner], places)
        proposed = guesses[owner, places][np.repeat(depths, depths + 1) > step]
        rows = VerifyRows(starts.astype(np.int32), proposed.astype(np.int32), PROMPT_LENGTH + lengths[active])
        result = verify(torch.from_numpy(logits), rows, SamplingRows(*(values[active] for values in sampling)))
        used = result.emitted >= 0
        answers[owner[used], places[used]] = result.emitted[used]
        lengths[active] += result.accepted_counts + 1
    return answers


def p_value(answers: np.ndarray, joint: np.ndarray) -> float:
    """Chi-square of the answers against their law; impossible answers must not occur."""
    counts = np.bincount(answers @ [25, 5, 1], minlength=125)
    assert counts[joint == 0].sum() == 0
    return float(chisquare(counts[joint > 0], joint[joint > 0] * len(answers)).pvalue)


LAWS = [
    Law(1.0),
    Law(0.7, top_p=0.85),
    Law(1.6, top_k=3),
    Law(1.0, min_p=0.25),
]


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_answers_follow_the_joint_law_and_do_not_depend_on_drafts(law: Law) -> None:
    target, sampling = ToyTarget(), law.sampling(NUM_REQUESTS, first_seed=1)
    plain = decode(target, sampling, drafts=None)
    source = np.random.default_rng(6)
    random = source.integers(0, VOCAB_SIZE, plain.shape)
    # Good drafts know the answer, bad ones avoid it, the rest guess.
    kind = source.integers(0, 3, (NUM_REQUESTS, 1))
    drafts = np.where(kind == 0, plain, np.where(kind == 1, (plain + 1) % VOCAB_SIZE, random))
    speculative = decode(target, sampling, drafts)
    assert np.array_equal(plain, speculative)
    assert p_value(speculative, target.joint(law)) > 1e-3


def test_consecutive_seeds_give_independent_answers() -> None:
    target, law = ToyTarget(), Law(1.0)
    answers = decode(target, law.sampling(NUM_REQUESTS, first_seed=2**40), drafts=None)
    first = target.logits(answers, np.zeros(len(answers), np.int64))[0]
    single = np.array(law.probabilities(first))
    pairs = answers[:-1:2, 0] * VOCAB_SIZE + answers[1::2, 0]
    expected = np.outer(single, single).ravel() * len(pairs)
    assert chisquare(np.bincount(pairs, minlength=25), expected).pvalue > 1e-3


def test_the_chi_square_test_notices_a_law_that_is_slightly_off() -> None:
    target = ToyTarget()
    answers = decode(target, Law(1.0).sampling(NUM_REQUESTS, first_seed=1), drafts=None)
    assert p_value(answers, target.joint(Law(1.03))) < 1e-6
