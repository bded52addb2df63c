"""Answers in several parts: their times are the gateway's, their counts those of all parts."""

from __future__ import annotations

import pytest

from outrider_cluster.gateway.answer_parts import AnswerParts
from outrider_runtime.clock import ManualClock
from outrider_wire.generation import (
    Finished,
    FinishReason,
    GenerationDelta,
    RoundReport,
    SpeculationStatistics,
)

LAST = Finished(
    FinishReason.STOP, 1, 2, 3, speculation=SpeculationStatistics(num_spec_tokens=4), time_to_first_token_us=7
)


def test_times_of_a_moved_answer_run_from_its_beginning() -> None:
    clock = ManualClock()
    parts = AnswerParts(clock)
    clock.advance(1)
    parts.saw(GenerationDelta(token_ids=(1,), round=RoundReport("a", 3, 1)), "f")
    parts.lost()
    clock.advance(2)
    parts.saw(GenerationDelta(token_ids=(2,), round=RoundReport("a", 3, 2)), "f")  # the last part counts it itself
    finished = parts.saw(GenerationDelta(finished=LAST), "f").finished
    assert finished is not None
    assert (finished.time_to_first_token_us, finished.generation_time_us) == (1_000_000, 2_000_000)
    assert (finished.speculation.num_draft_tokens, finished.speculation.num_accepted_draft_tokens) == (3, 1)
    assert finished.speculation.num_spec_tokens == 4
    assert not finished.mixed_logits


def test_counts_survive_several_moves() -> None:
    parts = AnswerParts(ManualClock())
    for accepted in (1, 2, 3):
        parts.saw(GenerationDelta(token_ids=(1,), round=RoundReport("a", 3, accepted)), "f")
        parts.lost()
    finished = parts.saw(GenerationDelta(finished=LAST), "f").finished
    assert finished is not None
    assert finished.speculation.per_step_accepted == (1, 2, 3)


@pytest.mark.parametrize(("second_gives", "mixed"), [((2,), True), ((), False)], ids=["ids", "none"])
def test_an_answer_is_marked_to_which_targets_with_other_logits_gave_ids(
    second_gives: tuple[int, ...], mixed: bool
) -> None:
    parts = AnswerParts(ManualClock())
    parts.saw(GenerationDelta(token_ids=(1,)), "f")
    parts.lost()
    finished = parts.saw(GenerationDelta(token_ids=second_gives, finished=LAST), "g").finished
    assert finished is not None
    assert finished.mixed_logits is mixed
    assert parts.fingerprints == ({"f", "g"} if mixed else {"f"})


def test_an_answer_in_one_part_is_left_as_it_is() -> None:
    delta = GenerationDelta(finished=LAST, round=RoundReport("a", 3, 1))
    assert AnswerParts(ManualClock()).saw(delta, "f") is delta
