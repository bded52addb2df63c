"""The policy as it learns: recorded answers one after the other, with the n-grams that are found in them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from outrider_doubles.answer_replay import AnswerReplay
from outrider_doubles.recorded_answers import NgramFates, RecordedAnswer, read_answers

from outrider_runtime.clock import ManualClock
from outrider_target.control.cost_model import StepCostModel
from outrider_target.control.cost_profile import load_profile
from outrider_target.control.depth_policy import DepthPolicy, StaticPolicy
from outrider_target.control.dynamic_policy import DynamicPolicy
from outrider_target.control.refined_cost import RefinedCost
from outrider_target.control.settings import DepthSettings

FOLDER = Path(__file__).parent / "recorded"
DEPTH = 8
STATIC_DEPTHS = (1, 2, 4, 8)
KINDS = ("chat", "code", "list", "copy")
ANSWERS = 64
"""That are given in a run, at least."""


@pytest.fixture(scope="module")
def cost() -> StepCostModel:
    return load_profile(FOLDER / "step_costs.json").model()


@pytest.fixture(scope="module")
def fates() -> NgramFates:
    return NgramFates(DEPTH)


def mixed(answers: list[RecordedAnswer]) -> list[RecordedAnswer]:
    return answers


def one_kind_after_the_other(answers: list[RecordedAnswer]) -> list[RecordedAnswer]:
    return sorted(answers, key=lambda answer: KINDS.index(answer.kind))


def only(kind: str) -> Callable[[list[RecordedAnswer]], list[RecordedAnswer]]:
    return lambda answers: [answer for answer in answers if answer.kind == kind]


ORDERS = {"mixed": mixed, "one kind after the other": one_kind_after_the_other} | {kind: only(kind) for kind in KINDS}


def given(order: str, count: int) -> list[RecordedAnswer]:
    chosen = ORDERS[order](read_answers(FOLDER / "answers.json"))
    return [chosen[index % len(chosen)] for index in range(count)]


def dynamic(cost: StepCostModel) -> Callable[[ManualClock], DepthPolicy]:
    return lambda clock: DynamicPolicy(DepthSettings(), RefinedCost(cost), DEPTH, clock)


@pytest.mark.parametrize(
    ("order", "clients"), [*((order, 1) for order in ORDERS), ("mixed", 8), ("mixed", 32), ("copy", 8)]
)
def test_while_it_learns_dynamic_depth_keeps_up_with_none_and_with_the_best_static_one(
    cost: StepCostModel, fates: NgramFates, order: str, clients: int
) -> None:
    answers = given(order, max(ANSWERS, 6 * clients))

    def speed(make_policy: Callable[[ManualClock], DepthPolicy]) -> float:
        return AnswerReplay(make_policy, cost, fates).serve(answers, clients).tokens_per_s

    reached = speed(dynamic(cost))
    none = speed(lambda _: StaticPolicy(0))
    best = max(speed(lambda _, depth=depth: StaticPolicy(depth)) for depth in STATIC_DEPTHS)
    assert reached >= 0.98 * none
    assert reached >= 0.95 * best


@pytest.mark.parametrize("clients", [1, 4])
def test_drafts_that_become_useless_are_given_up_but_for_probes_and_taken_up_again(
    cost: StepCostModel, fates: NgramFates, clients: int
) -> None:
    replay = AnswerReplay(dynamic(cost), cost, fates)
    replay.serve(given("mixed", 16 * clients), clients)
    assert any(round_.level > 0 for round_ in replay.rounds[-100:])
    replay.drafts_are_useless = True
    began = len(replay.rounds)
    replay.serve(given("mixed", 64 * clients), clients)
    later = replay.rounds[began + 300 :]
    assert sum(round_.level > 0 for round_ in later) <= 0.02 * len(later)
    assert sum(round_.verified for round_ in later) <= 0.2 * len(later)
    replay.drafts_are_useless = False
    began = len(replay.rounds)
    replay.serve(given("mixed", 64 * clients), clients)
    back = next((index for index, round_ in enumerate(replay.rounds[began:]) if round_.level > 0), None)
    assert back is not None and back <= 1000
