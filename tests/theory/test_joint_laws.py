"""Answers of three tokens follow the target's joint law under every ratio rule, whoever drafts and however deep.

What decides whether an id is proposed depends on nothing but what came before it, as the rules ask.
"""

from functools import partial

import numpy as np
import pytest
from outrider_doubles.toy_rules import (
    MAX_DEPTH,
    VOCAB_SIZE,
    Draft,
    Ints,
    Plan,
    ToyDrafter,
    ToyTarget,
    decode,
    draft_weights,
)
from scipy.stats import chisquare

from outrider_kernels.ratio_verify import verify_by_ratio

COUNT = 60_000
KINDS = ["good", "bad", "adversarial", "certain", "sparse", "equal"]


def proposals(drafter: ToyDrafter, tokens: Ints, lengths: Ints) -> Ints:
    """Prefixes continued by as many drawn ids as a round may propose."""
    drawn = tokens.copy()
    rows = np.arange(len(tokens))
    for step in range(MAX_DEPTH):
        drawn[rows, lengths + step] = drafter.draw(drawn, lengths + step)
    return drawn


def fixed(drafter: ToyDrafter, tokens: Ints, lengths: Ints) -> Draft:
    return Draft(proposals(drafter, tokens, lengths), np.full(len(tokens), MAX_DEPTH))


def changing(drafter: ToyDrafter, tokens: Ints, lengths: Ints) -> Draft:
    return Draft(proposals(drafter, tokens, lengths), drafter.source.integers(0, MAX_DEPTH + 1, len(tokens)))


def by_confidence(drafter: ToyDrafter, tokens: Ints, lengths: Ints) -> Draft:
    """Cut before the first id whose law is too flat: a matter of the prefix."""
    drawn, depths = proposals(drafter, tokens, lengths), np.zeros(len(tokens), np.int64)
    for step in range(MAX_DEPTH):
        depths += (depths == step) & (drafter.confidence(drawn, lengths + step) > 0.45)
    return Draft(drawn, depths)


def by_arrival(drafter: ToyDrafter, tokens: Ints, lengths: Ints) -> Draft:
    """A third of the proposals is late, and another third arrived in part, whatever they say."""
    luck = drafter.source.integers(0, 3, len(tokens))
    return Draft(proposals(drafter, tokens, lengths), np.array([0, 1, MAX_DEPTH])[luck])


def p_value(answers: Ints, target: ToyTarget) -> float:
    joint = target.joint()
    counts = np.bincount(answers @ [VOCAB_SIZE**2, VOCAB_SIZE, 1], minlength=len(joint))
    return float(chisquare(counts, joint * len(answers)).pvalue)


@pytest.mark.parametrize("plan", [fixed, changing, by_confidence, by_arrival], ids=lambda plan: plan.__name__)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("block", [False, True], ids=["ratio", "block"])
def test_answers_follow_the_joint_law(block: bool, kind: str, plan: Plan) -> None:
    target = ToyTarget()
    drafter = ToyDrafter(draft_weights(kind, target), np.random.default_rng(5))
    answers = decode(target, drafter, plan, partial(verify_by_ratio, block=block), COUNT)
    assert p_value(answers, target) > 1e-4


def test_the_same_drafts_give_the_same_answers_again() -> None:
    target = ToyTarget()
    for block in (False, True):
        drafters = [ToyDrafter(draft_weights("bad", target), np.random.default_rng(5)) for _ in range(2)]
        first, second = (decode(target, d, changing, partial(verify_by_ratio, block=block), 500) for d in drafters)
        assert np.array_equal(first, second)
