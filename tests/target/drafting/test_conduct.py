"""Small decisions about one worker: breaker, latency, back-off, conduct."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from outrider_runtime.clock import ManualClock
from outrider_target.drafting.backoff import Backoff
from outrider_target.drafting.breaker import Breaker
from outrider_target.drafting.conduct import Conduct, Offence
from outrider_target.drafting.latency import Latency
from outrider_target.drafting.settings import DraftingSettings


def test_a_breaker_opens_after_misses_in_a_row_and_closes_with_one_answer_in_time() -> None:
    breaker = Breaker(misses=3)
    assert [breaker.miss(), breaker.miss()] == [False, False]
    breaker.answer(in_time=True)
    assert [breaker.miss(), breaker.miss(), breaker.miss(), breaker.miss()] == [False, False, True, False]
    breaker.answer(in_time=False)
    assert breaker.is_open
    breaker.answer(in_time=True)
    assert not breaker.is_open


def test_latency_starts_at_zero_takes_the_first_sample_and_follows_slowly() -> None:
    latency = Latency()
    assert latency.mean_s == 0.0
    latency.observe(0.008)
    assert latency.mean_s == 0.008
    latency.observe(0.016)
    assert latency.mean_s == pytest.approx(0.009)


def test_backoff_doubles_up_to_its_bound_within_the_jitter() -> None:
    longest = Backoff(0.1, 0.5, uniform=lambda: 1.0)
    assert [longest.next_s() for _ in range(4)] == pytest.approx([0.1, 0.2, 0.4, 0.5])
    longest.reset()
    assert longest.next_s() == pytest.approx(0.1)
    assert Backoff(0.1, 0.5, uniform=lambda: 0.0).next_s() == pytest.approx(0.05)


def test_repeated_malformed_rows_are_an_offence_and_start_afresh_after_the_sentence() -> None:
    conduct = Conduct(DraftingSettings(malformed_rows=2), ManualClock())
    assert [conduct.malformed(), conduct.malformed()] == [None, Offence.MALFORMED_ROWS]
    conduct.sentence_s()
    assert conduct.malformed() is None


def test_sentences_grow_to_a_bound_and_a_long_good_time_is_forgiven() -> None:
    clock = ManualClock()
    conduct = Conduct(DraftingSettings(quarantine_first_ms=1000, quarantine_max_ms=4000), clock)
    served = []
    for _ in range(4):
        served.append(conduct.sentence_s())
        clock.advance(served[-1] + 1.0)
    assert served == [1.0, 2.0, 4.0, 4.0]
    clock.advance(4.0)
    assert conduct.sentence_s() == 1.0


def test_a_worker_that_answers_what_it_was_sent_never_floods() -> None:
    conduct = Conduct(DraftingSettings(unsolicited_rows=16), ManualClock())
    for _ in range(1000):
        conduct.grant(8)
        assert conduct.receive(8) is None


def test_rows_beyond_the_allowance_are_a_flood_and_empty_frames_count() -> None:
    conduct = Conduct(DraftingSettings(unsolicited_rows=16), ManualClock())
    assert [conduct.receive(0) for _ in range(16)] == [None] * 16
    assert conduct.receive(0) is Offence.FLOOD


def test_unsolicited_rows_are_forgiven_with_time() -> None:
    clock = ManualClock()
    conduct = Conduct(DraftingSettings(unsolicited_rows=16), clock)
    assert conduct.receive(16) is None
    clock.advance(1.0)
    assert conduct.receive(16) is None
    assert conduct.receive(1) is Offence.FLOOD


@pytest.mark.parametrize("name", ["reconnect", "quarantine"])
def test_a_first_pause_beyond_the_longest_is_refused(name: str) -> None:
    with pytest.raises(ValidationError, match=f"{name}_first_ms 900 exceeds {name}_max_ms 800"):
        DraftingSettings.model_validate({f"{name}_first_ms": 900, f"{name}_max_ms": 800})
