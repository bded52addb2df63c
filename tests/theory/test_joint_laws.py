"""Answers of three tokens follow the target's joint law under every ratio rule, whoever drafts and however deep.

What decides whether an id is proposed depends on nothing but what came before it, as the rules ask.
"""

from functools import partial

import numpy as np
import pytest
from outrider_doubles.toy_rules import HONEST_PLANS, ToyDrafter, ToyTarget, changing, decode, draft_weights, p_value

from outrider_kernels.ratio_verify import verify_by_ratio

COUNT = 30_000
KINDS = ["good", "bad", "adversarial", "certain", "sparse", "equal"]


@pytest.mark.parametrize("plan", HONEST_PLANS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("block", [False, True], ids=["ratio", "block"])
def test_answers_follow_the_joint_law(block: bool, kind: str, plan: str) -> None:
    target = ToyTarget()
    drafter = ToyDrafter(draft_weights(kind, target), np.random.default_rng(5))
    answers = decode(target, drafter, HONEST_PLANS[plan], partial(verify_by_ratio, block=block), COUNT)
    assert p_value(answers, target.joint()) > 1e-4


def test_the_same_drafts_give_the_same_answers_again() -> None:
    target = ToyTarget()
    for block in (False, True):
        drafters = [ToyDrafter(draft_weights("bad", target), np.random.default_rng(5)) for _ in range(2)]
        first, second = (decode(target, d, changing, partial(verify_by_ratio, block=block), 500) for d in drafters)
        assert np.array_equal(first, second)
