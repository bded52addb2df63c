"""One round of the ratio rules, gone through exhaustively: the law is the target's, and mistakes show."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from outrider_doubles.exact_rounds import Continues, ExactRound, Prefix
from outrider_doubles.toy_rules import MAX_DEPTH, VOCAB_SIZE, Ints, ToyTarget, draft_weights, prefix_codes

from outrider_kernels.ratio_reference import Law

KINDS = ["good", "bad", "adversarial", "certain", "sparse", "equal"]


def code(prefix: Prefix) -> int:
    return int(prefix_codes(np.array([[*prefix, 0]]), np.array([len(prefix)]))[0])


def share(weights: Ints, prefix: Prefix) -> np.ndarray:
    return weights[code(prefix)] / weights[code(prefix)].sum()


def fixed(depth: int) -> Callable[[Ints], Continues]:
    return lambda weights: lambda prefix: len(prefix) < depth


def confident(weights: Ints) -> Continues:
    return lambda prefix: share(weights, prefix).max() > 0.45


def unlucky(weights: Ints) -> Continues:
    """Any other function of the prefix."""
    return lambda prefix: sum(prefix) != 2


def exact_round(kind: str, plan: Callable[[Ints], Continues], block: bool) -> ExactRound:
    target = ToyTarget()
    weights = draft_weights(kind, target)
    return ExactRound(target, weights, weights, plan(weights), block)


@pytest.mark.parametrize("plan", [fixed(1), fixed(2), fixed(3), confident, unlucky])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("block", [False, True], ids=["ratio", "block"])
def test_a_round_has_the_targets_law(block: bool, kind: str, plan: Callable[[Ints], Continues]) -> None:
    played = exact_round(kind, plan, block)
    assert np.abs(played.joint() - played.target.joint()).max() < 1e-9


@pytest.mark.parametrize("kind", KINDS)
def test_the_ratio_test_accepts_as_often_as_any_rule_can(kind: str) -> None:
    played = exact_round(kind, fixed(1), block=False)
    common = np.minimum(played.target.law[0], share(played.drawn, ())).sum()
    assert played.mean_accepted() == pytest.approx(common, abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_block_verification_never_accepts_less_and_certain_ids_alike(kind: str) -> None:
    ratio, block = (exact_round(kind, fixed(MAX_DEPTH), block).mean_accepted() for block in (False, True))
    if kind in ("certain", "equal"):
        assert block == pytest.approx(ratio, abs=1e-6)
    else:
        assert block > ratio + 1e-3


def distance(played: ExactRound) -> float:
    """Total variation from the target's joint law."""
    return float(np.abs(played.joint() - played.target.joint()).sum() / 2)


@pytest.mark.parametrize("block", [False, True], ids=["ratio", "block"])
class TestMistakes:
    def test_dropping_an_id_for_its_own_low_chance_shows(self, block: bool) -> None:
        honest = exact_round("equal", fixed(1), block)
        wrong = replace(honest, keeps=lambda prefix, token: bool(share(honest.drawn, prefix)[token] > 0.3))
        kept = share(honest.drawn, ())
        mass = kept[kept > 0.3].sum()
        assert distance(wrong) == pytest.approx(mass * (1 - mass), abs=1e-6)  # the anchor of this trap, where p = q
        assert mass * (1 - mass) > 0.05

    def test_drawing_from_the_full_law_and_sending_the_cut_one_shows(self, block: bool) -> None:
        honest = exact_round("good", fixed(2), block)
        cut = np.where(honest.drawn >= np.sort(honest.drawn, 1)[:, -2:-1], honest.drawn, 0)
        listed = np.where(cut > 0, cut, 1)  # ids that were cut have next to no chance, as far as the verifier knows
        assert distance(replace(honest, sent=listed)) > 0.02
        assert distance(replace(honest, drawn=cut, sent=cut)) < 1e-9

    def test_sending_a_law_for_an_id_that_was_certain_shows(self, block: bool) -> None:
        honest = exact_round("certain", fixed(2), block)
        assert distance(replace(honest, sent=draft_weights("good", honest.target))) > 0.05

    def test_drawing_the_token_from_the_whole_law_after_a_rejection_shows(self, block: bool) -> None:
        def whole(law: Law, draft: Law, survival: float) -> Law:
            return law

        for kind in ("certain", "bad"):
            assert distance(replace(exact_round(kind, fixed(2), block), rest=whole)) > 0.02


@pytest.mark.parametrize("block", [False, True], ids=["ratio", "block"])
def test_leaving_out_laws_costs_acceptance_and_never_the_law_whatever_else_is_done(block: bool) -> None:
    honest = exact_round("bad", fixed(2), block)
    silent = replace(honest, sent=np.eye(VOCAB_SIZE, dtype=np.int64)[honest.drawn.argmax(1)])
    assert distance(silent) < 1e-9
    assert silent.mean_accepted() < honest.mean_accepted() - 0.02
    assert distance(replace(silent, keeps=lambda prefix, token: token != 1)) < 1e-9
