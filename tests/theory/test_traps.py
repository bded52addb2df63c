"""What breaks the ratio rules breaks them measurably, and breaks equality not at all.

Each trap is a way to decide what a round verifies that looks harmless. The first test shows that the statistic of
`test_joint_laws` would notice it; the second that equality under shared noise emits the same tokens nevertheless. The
last is about what a rule does with ids that nobody drafted.
"""

from functools import partial

import numpy as np
import pytest
import torch
from outrider_doubles.toy_rules import (
    MAX_DEPTH,
    PROMPT_TOKENS,
    Draft,
    Ints,
    Plan,
    ToyDrafter,
    ToyTarget,
    Verify,
    decode,
    draft_weights,
    fixed,
    p_value,
    prefix_codes,
    proposals,
    sampling,
)

from outrider_kernels.contracts import PADDING_ID, SamplingRows, VerifyResult, VerifyRows
from outrider_kernels.draft_rows import DraftRows, certain
from outrider_kernels.draws import TOKEN_PURPOSE, draw, unit
from outrider_kernels.ratio_verify import verify_by_ratio
from outrider_kernels.verify import verify

COUNT = 60_000


def cut_by_own_chance(drafter: ToyDrafter, tokens: Ints, lengths: Ints, requests: Ints) -> Draft:
    """Drops an id because the drafter itself finds this very id unlikely."""
    drawn, depths, rows = proposals(drafter, tokens, lengths), np.zeros(len(tokens), np.int64), np.arange(len(tokens))
    for step in range(MAX_DEPTH):
        ids = drawn[rows, lengths + step]
        depths += (depths == step) & (drafter.chance(drawn, lengths + step, ids) > 0.25)
    return Draft(drawn, depths)


def late_by_content(drafter: ToyDrafter, tokens: Ints, lengths: Ints, requests: Ints) -> Draft:
    """Some proposals take longer to make than others, and which ones depends on their ids."""
    drawn = proposals(drafter, tokens, lengths)
    return Draft(drawn, np.where(drawn[np.arange(len(tokens)), lengths] == 0, 0, MAX_DEPTH))


def longer_of_two(drafter: ToyDrafter, tokens: Ints, lengths: Ints, requests: Ints) -> Draft:
    """Takes the longer of two proposals, each of them cut by its prefixes alone."""
    drawn = [proposals(drafter, tokens, lengths) for _ in range(2)]
    depths = np.ones((2, len(tokens)), np.int64)
    for one, depth in zip(drawn, depths, strict=True):
        for step in range(1, MAX_DEPTH):
            depth += (depth == step) & (drafter.confidence(one, lengths + step) > 0.45)
    second = depths[1] > depths[0]
    return Draft(np.where(second[:, None], drawn[1], drawn[0]), np.where(second, depths[1], depths[0]))


def drawn_by_the_verifiers_bits(drafter: ToyDrafter, tokens: Ints, lengths: Ints, requests: Ints) -> Draft:
    """Draws ids by the bits that the verifier draws its own token by."""
    drawn, rows = tokens.copy(), np.arange(len(tokens))
    for step in range(MAX_DEPTH):
        weights = drafter.weights[prefix_codes(drawn, lengths + step)]
        bits = [
            unit(draw(request + 1, PROMPT_TOKENS + length + step, TOKEN_PURPOSE))
            for request, length in zip(requests.tolist(), lengths.tolist(), strict=True)
        ]
        points = np.array(bits) * weights.sum(1)
        drawn[rows, lengths + step] = (weights.cumsum(1) <= points[:, None]).sum(1)
    return Draft(drawn, np.full(len(tokens), MAX_DEPTH))


TRAPS = [
    pytest.param(cut_by_own_chance, "bad", False, id="an id is dropped for its own low chance"),
    pytest.param(cut_by_own_chance, "equal", True, id="the same under block verification, by a perfect drafter"),
    pytest.param(late_by_content, "bad", False, id="lateness depends on the ids"),
    pytest.param(longer_of_two, "bad", False, id="the longer of two proposals is taken"),
    pytest.param(drawn_by_the_verifiers_bits, "bad", False, id="drafter and verifier share bits"),
]


@pytest.mark.parametrize(("plan", "kind", "block"), TRAPS)
def test_the_statistic_notices_a_trap_under_a_ratio_rule(plan: Plan, kind: str, block: bool) -> None:
    target = ToyTarget()
    drafter = ToyDrafter(draft_weights(kind, target), np.random.default_rng(5))
    answers = decode(target, drafter, plan, partial(verify_by_ratio, block=block), COUNT)
    assert p_value(answers, target.joint()) < 1e-6


@pytest.mark.parametrize(("plan", "kind", "block"), TRAPS)
def test_no_trap_changes_a_token_under_equality(plan: Plan, kind: str, block: bool) -> None:
    target = ToyTarget()

    def equality(logits, rows, sampling, laws):  # type: ignore[no-untyped-def]
        return verify(logits, rows, sampling)

    def nothing(drafter: ToyDrafter, tokens: Ints, lengths: Ints, requests: Ints) -> Draft:
        return Draft(tokens, np.zeros(len(tokens), np.int64))

    drafter = ToyDrafter(draft_weights(kind, target), np.random.default_rng(5))
    plain = decode(target, drafter, nothing, equality, 3_000)
    assert np.array_equal(decode(target, drafter, plan, equality, 3_000), plain)
    assert np.array_equal(decode(target, drafter, fixed, equality, 3_000), plain)


def keep_the_likeliest(logits: torch.Tensor, rows: VerifyRows, given: SamplingRows, laws: DraftRows) -> VerifyResult:
    """Takes filler for a draft: keeps ids that are the arg-max, and otherwise draws from the whole law."""
    every, places = MAX_DEPTH + 1, np.arange(MAX_DEPTH + 1)
    positions = (rows.first_position[:, None] + places).ravel()
    alone = VerifyRows(np.arange(len(logits) + 1, dtype=np.int32), np.zeros(0, np.int32), positions)
    drawn = verify(logits, alone, sampling(np.repeat(given.seed, every))).emitted.reshape(-1, every)
    filler = rows.proposed.reshape(-1, MAX_DEPTH)
    kept = (filler == logits.argmax(1).numpy().reshape(-1, every)[:, :MAX_DEPTH]).cumprod(1).sum(1)
    emitted = np.where(places < kept[:, None], np.pad(filler, ((0, 0), (0, 1))), PADDING_ID)
    emitted[np.arange(len(kept)), kept] = drawn[np.arange(len(kept)), kept]
    return VerifyResult(kept.astype(np.int32), emitted.ravel().astype(np.int32))


@pytest.mark.parametrize("block", [False, True], ids=["ratio", "block"])
def test_random_filler_without_a_law_leaves_the_joint_law_as_it_is(block: bool) -> None:
    target = ToyTarget()

    def without_laws(logits: torch.Tensor, rows: VerifyRows, given: SamplingRows, laws: DraftRows) -> VerifyResult:
        return verify_by_ratio(logits, rows, given, certain(len(rows.proposed)), block=block)

    def answers(rule: Verify) -> Ints:
        filler = ToyDrafter(np.ones_like(draft_weights("bad", target)), np.random.default_rng(5))
        return decode(target, filler, fixed, rule, COUNT)

    assert p_value(answers(without_laws), target.joint()) > 1e-4
    assert p_value(answers(keep_the_likeliest), target.joint()) < 1e-6
