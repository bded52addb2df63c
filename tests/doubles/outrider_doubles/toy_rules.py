"""A target and drafters over four ids whose laws depend on the whole prefix, and answers decoded in rounds of drafts.

Every answer of three tokens has its exact probability, so that a rule can be held against the joint law.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from scipy.stats import chisquare

from outrider_kernels.contracts import SamplingRows, VerifyResult, VerifyRows
from outrider_kernels.draft_rows import DraftRows

VOCAB_SIZE = 4
ANSWER_TOKENS = 3
MAX_DEPTH = 3
PROMPT_TOKENS = 7
_PREFIX_TOKENS = ANSWER_TOKENS + MAX_DEPTH
_FIRST_CODE = np.array([0, *itertools.accumulate(VOCAB_SIZE**n for n in range(_PREFIX_TOKENS))])

Ints = npt.NDArray[np.int64]
Verify = Callable[[torch.Tensor, VerifyRows, SamplingRows, DraftRows], VerifyResult]


def prefix_codes(tokens: Ints, lengths: Ints) -> Ints:
    """[B] one number for each prefix: the first `lengths` [B] of `tokens` [B, n]."""
    codes = np.zeros(len(tokens), np.int64)
    for place in range(_PREFIX_TOKENS - 1):
        codes = np.where(place < lengths, codes * VOCAB_SIZE + tokens[:, min(place, tokens.shape[1] - 1)], codes)
    shifted: Ints = codes + _FIRST_CODE[lengths]
    return shifted


class ToyTarget:
    """Logits [prefixes, 4] by prefix, at temperature 1 and without filters."""

    def __init__(self) -> None:
        source = np.random.default_rng(3)
        self.logits = (source.standard_normal((_FIRST_CODE[-1], VOCAB_SIZE)) * 1.3).astype(np.float32)
        exponentials = np.exp(self.logits.astype(np.float64))
        self.law = exponentials / exponentials.sum(1, keepdims=True)

    def joint(self) -> npt.NDArray[np.float64]:
        """[64] exact probability of every answer."""
        answers = np.array(list(itertools.product(range(VOCAB_SIZE), repeat=ANSWER_TOKENS)))
        result = np.ones(len(answers))
        for length in range(ANSWER_TOKENS):
            codes = prefix_codes(answers, np.full(len(answers), length))
            result *= self.law[codes, answers[:, length]]
        return result


def draft_weights(kind: str, target: ToyTarget) -> Ints:
    """[prefixes, 4] weights of a drafter's laws; an id of weight 0 is not listed. Rows with one id are certain."""
    source = np.random.default_rng(11)
    noise = np.exp(source.standard_normal(target.law.shape))
    weights = {
        "good": target.law * noise**0.3,
        "bad": noise,
        "adversarial": 1 / (target.law + 0.01),
        "equal": target.law,
    }
    if kind == "certain":
        certain: Ints = np.eye(VOCAB_SIZE, dtype=np.int64)[target.law.argmax(1)]
        return certain
    if kind == "sparse":  # the likeliest two, as top-m laws are
        kept = target.law >= np.sort(target.law, 1)[:, -2:-1]
        sparse: Ints = np.where(kept, np.rint(1e6 * target.law * noise**0.5), 0).astype(np.int64).clip(min=kept)
        return sparse
    dense: Ints = np.rint(1e6 * weights[kind]).astype(np.int64).clip(min=1)
    return dense


@dataclass(frozen=True)
class Draft:
    """What drafters propose after `tokens` [B, 6] of `lengths` [B]."""

    tokens: Ints
    """[B, 6] prefixes, continued by what is proposed."""
    depths: Ints
    """[B] proposed ids."""


@dataclass(frozen=True)
class ToyDrafter:
    """Draws proposals from its laws, by chance that nothing else sees."""

    weights: Ints
    source: np.random.Generator

    def draw(self, tokens: Ints, lengths: Ints) -> Ints:
        """[B] an id after each prefix."""
        weights = self.weights[prefix_codes(tokens, lengths)]
        points = self.source.random(len(tokens)) * weights.sum(1)
        return (weights.cumsum(1) <= points[:, None]).sum(1)  # type: ignore[no-any-return]

    def confidence(self, tokens: Ints, lengths: Ints) -> npt.NDArray[np.float64]:
        """[B] the chance of the likeliest id after each prefix: no matter which one is drawn."""
        weights = self.weights[prefix_codes(tokens, lengths)]
        return weights.max(1) / weights.sum(1)  # type: ignore[no-any-return]

    def chance(self, tokens: Ints, lengths: Ints, ids: Ints) -> npt.NDArray[np.float64]:
        """[B] the chance that these very ids had."""
        weights = self.weights[prefix_codes(tokens, lengths)]
        return weights[np.arange(len(ids)), ids] / weights.sum(1)  # type: ignore[no-any-return]


Plan = Callable[[ToyDrafter, Ints, Ints, Ints], Draft]
"""From a drafter, prefixes (tokens [B, 6], lengths [B]) and the requests' numbers [B] to what a round verifies."""


def decode(target: ToyTarget, drafter: ToyDrafter, plan: Plan, verify: Verify, count: int) -> Ints:
    """[count, 3] answers, in rounds of proposals; seeds count up from 1."""
    tokens, lengths = np.zeros((count, _PREFIX_TOKENS), np.int64), np.zeros(count, np.int64)
    seeds = np.arange(1, count + 1, dtype=np.uint64)
    while len(active := np.flatnonzero(lengths < ANSWER_TOKENS)):
        draft = plan(drafter, tokens[active], lengths[active], active)
        starts = np.concatenate([[0], np.cumsum(draft.depths + 1)])
        owner = np.repeat(np.arange(len(active)), draft.depths + 1)
        step = np.arange(starts[-1]) - starts[owner]
        places = lengths[active][owner] + step
        codes = prefix_codes(draft.tokens[owner], places)
        is_proposed = step < draft.depths[owner]
        proposed = draft.tokens[owner[is_proposed], places[is_proposed]]
        rows = VerifyRows(starts.astype(np.int32), proposed.astype(np.int32), PROMPT_TOKENS + lengths[active])
        laws = draft_rows(drafter.weights[codes[is_proposed]])
        result = verify(torch.from_numpy(target.logits[codes]), rows, sampling(seeds[active]), laws)
        used = (result.emitted >= 0) & (places < _PREFIX_TOKENS)
        tokens[active[owner[used]], places[used]] = result.emitted[used]
        lengths[active] += result.accepted_counts + 1
    return tokens[:, :ANSWER_TOKENS]


def proposals(drafter: ToyDrafter, tokens: Ints, lengths: Ints) -> Ints:
    """[B, 6] prefixes continued by as many drawn ids as a round may propose."""
    drawn = tokens.copy()
    rows = np.arange(len(tokens))
    for step in range(MAX_DEPTH):
        drawn[rows, lengths + step] = drafter.draw(drawn, lengths + step)
    return drawn


def fixed(drafter: ToyDrafter, tokens: Ints, lengths: Ints, requests: Ints) -> Draft:
    """The greatest depth, always."""
    return Draft(proposals(drafter, tokens, lengths), np.full(len(tokens), MAX_DEPTH))


def changing(drafter: ToyDrafter, tokens: Ints, lengths: Ints, requests: Ints) -> Draft:
    """Another depth in every round."""
    return Draft(proposals(drafter, tokens, lengths), drafter.source.integers(0, MAX_DEPTH + 1, len(tokens)))


def by_confidence(drafter: ToyDrafter, tokens: Ints, lengths: Ints, requests: Ints) -> Draft:
    """Cut before the first id whose law is too flat: a matter of the prefix."""
    drawn, depths = proposals(drafter, tokens, lengths), np.zeros(len(tokens), np.int64)
    for step in range(MAX_DEPTH):
        depths += (depths == step) & (drafter.confidence(drawn, lengths + step) > 0.45)
    return Draft(drawn, depths)


def by_arrival(drafter: ToyDrafter, tokens: Ints, lengths: Ints, requests: Ints) -> Draft:
    """A third of the proposals is late, and another third arrived in part, whatever they say."""
    luck = drafter.source.integers(0, 3, len(tokens))
    return Draft(proposals(drafter, tokens, lengths), np.array([0, 1, MAX_DEPTH])[luck])


HONEST_PLANS = {"fixed": fixed, "changing": changing, "by confidence": by_confidence, "by arrival": by_arrival}


def p_value(answers: Ints, joint: npt.NDArray[np.float64]) -> float:
    """Chi-square of answers [B, 3] against their joint law [64]."""
    counts = np.bincount(answers @ [VOCAB_SIZE**2, VOCAB_SIZE, 1], minlength=len(joint))
    return float(chisquare(counts, joint * len(answers)).pvalue)


def sampling(seeds: npt.NDArray[np.uint64]) -> SamplingRows:
    """Temperature 1 and no filters."""
    ones, zeros = np.ones(len(seeds)), np.zeros(len(seeds))
    return SamplingRows(ones, np.zeros(len(seeds), np.int32), ones, zeros, seeds)


def draft_rows(weights: Ints) -> DraftRows:
    """Laws [P, 4] in their sparse form; those of one id are certain."""
    listed = (weights > 0) & ((weights > 0).sum(1, keepdims=True) > 1)
    starts = np.concatenate([[0], listed.sum(1).cumsum()])
    laws, ids = np.nonzero(listed)
    return DraftRows(starts.astype(np.int32), ids.astype(np.int32), weights[laws, ids])
