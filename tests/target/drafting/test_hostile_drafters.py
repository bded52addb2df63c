"""Real gRPC with draft workers that lie: no call raises, no round is held up, nothing out of range comes through."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from outrider_doubles import lies
from outrider_doubles.hostile_drafter import DrafterFacts, HostileDrafter
from outrider_doubles.lies import Lie
from outrider_doubles.verifier import Verifier

from outrider_target.drafting.settings import DraftingSettings
from outrider_wire.drafting import DrafterRound, VerifierRound

SETTINGS = DraftingSettings(
    draft_deadline_ms=50,
    reconnect_first_ms=1,
    reconnect_max_ms=20,
    quarantine_first_ms=60_000,
    mismatch_retry_ms=60_000,
    unsolicited_rows=256,
)
KEYS = range(1, 9)


@pytest.fixture
def verifier() -> Iterator[Verifier]:
    verifier = Verifier(SETTINGS)
    yield verifier
    verifier.close()


HARMLESS = {
    "replays every frame": (lies.replaying, ("duplicate",)),
    "answers one frame late": (lies.Lagging(), ()),
    "proposes wrong ids": (lies.wrong_ids, ()),
    "speaks of an earlier epoch": (lies.past_epoch, ("stale",)),
    "names another session": (lies.foreign_session, ("unknown_session", "malformed")),
}
MALFORMED = {
    "the first id beyond the vocabulary": lies.beyond_vocabulary,
    "the largest id that fits": lies.largest_id,
    "negative ids": lies.negative_ids,
    "too many ids": lies.too_many_ids,
    "a base that was never sent": lies.future_base,
    "an epoch from the future": lies.future_epoch,
    "confidences that are no numbers": lies.confident_of_nothing,
    "too few confidences": lies.too_few_confidences,
    "other ids under the same key": lies.contradicting,
    "resyncs for ever": lies.forgetting,
}


@pytest.mark.parametrize(("lie", "reasons"), HARMLESS.values(), ids=HARMLESS)
def test_answers_that_are_merely_useless_are_dropped_by_reason(
    verifier: Verifier, lie: Lie, reasons: tuple[str, ...]
) -> None:
    with HostileDrafter(lie, DrafterFacts("liar")) as liar:
        verifier.knows(liar.member())
        verifier.engine.start(*KEYS)
        verifier.until_state("liar", state="ready")
        verifier.engine.rounds_until(lambda: not reasons or verifier.dropped(*reasons) > 0)
        for _ in range(20):
            verifier.engine.round()
    assert verifier.engine.answers_are_right()


@pytest.mark.parametrize("lie", MALFORMED.values(), ids=MALFORMED)
def test_malformed_answers_quarantine_the_worker_while_an_honest_one_takes_over(verifier: Verifier, lie: Lie) -> None:
    with HostileDrafter(lie, DrafterFacts("liar")) as liar, HostileDrafter(facts=DrafterFacts("saint")) as saint:
        verifier.knows(liar.member())
        verifier.engine.start(*KEYS)
        verifier.until_state("liar", state="quarantined")
        verifier.knows(liar.member(), saint.member())
        verifier.until_accepted("saint")
    assert verifier.engine.answers_are_right()
    assert verifier.reason("liar") == "repeated malformed rows"


@pytest.mark.parametrize(
    ("lie", "reason"),
    [
        (lies.garbage, "a frame that could not be decoded"),
        (lies.truncated, "a frame that could not be decoded"),
        (lies.flooding, "more rows than were asked for"),
    ],
    ids=["garbage", "a frame without its end", "flood"],
)
def test_frames_that_are_an_offence_quarantine_the_worker(verifier: Verifier, lie: Lie, reason: str) -> None:
    with HostileDrafter(lie, DrafterFacts("liar")) as liar, HostileDrafter(facts=DrafterFacts("saint")) as saint:
        verifier.knows(liar.member())
        verifier.engine.start(*KEYS)
        verifier.until_state("liar", state="quarantined")
        assert verifier.reason("liar") == reason
        verifier.knows(liar.member(), saint.member())
        verifier.until_accepted("saint")
    assert verifier.engine.answers_are_right()


@pytest.mark.parametrize("lie", [lies.hanging_up, lies.oversized], ids=["breaks its stream", "oversized frame"])
def test_a_stream_that_breaks_again_and_again_costs_nothing_but_its_drafts(verifier: Verifier, lie: Lie) -> None:
    with HostileDrafter(lie, DrafterFacts("liar")) as liar, HostileDrafter(facts=DrafterFacts("saint")) as saint:
        verifier.knows(liar.member())
        verifier.engine.start(*KEYS)
        verifier.engine.rounds_until(lambda: verifier.counted("failovers_total") > 0)
        verifier.knows(liar.member(), saint.member())
        verifier.until_accepted("saint")
    assert verifier.engine.answers_are_right()


def test_a_silent_worker_is_waited_for_a_few_times_and_then_left(verifier: Verifier) -> None:
    with HostileDrafter(lies.silent, DrafterFacts("mute")) as mute:
        verifier.knows(mute.member())
        verifier.engine.start(*KEYS)
        verifier.engine.rounds_until(lambda: verifier.reason("mute") == "misses deadlines")
        misses = verifier.counted("deadline_misses_total")
        for _ in range(20):
            verifier.engine.round()
        assert verifier.counted("deadline_misses_total") == misses == SETTINGS.breaker_misses
    assert verifier.engine.answers_are_right()


def test_a_worker_that_refuses_everybody_leaves_them_to_the_next(verifier: Verifier) -> None:
    with HostileDrafter(lies.refusing, DrafterFacts("full")) as full, HostileDrafter(facts=DrafterFacts("a")) as other:
        verifier.knows(full.member())
        verifier.engine.start(*KEYS)
        verifier.engine.rounds_until(lambda: verifier.counted("refusals_total") > 0)
        verifier.knows(full.member(), other.member())
        verifier.until_accepted("a")


def test_a_stuck_worker_costs_a_deadline_and_resumes_when_it_answers_again(verifier: Verifier) -> None:
    held = lies.Held()
    with HostileDrafter(held, DrafterFacts("stuck")) as stuck:
        held.released.set()
        verifier.knows(stuck.member())
        verifier.engine.start(*KEYS)
        verifier.until_accepted("stuck")
        held.released.clear()
        verifier.engine.rounds_until(lambda: verifier.reason("stuck") == "misses deadlines")
        held.released.set()
        verifier.until_accepted("stuck")
        verifier.engine.rounds_until(lambda: verifier.reason("stuck") == "")
    assert verifier.engine.answers_are_right()


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        (DrafterFacts("odd", tokenizer_fingerprint="0" * 64), f"has {'f' * 64}, draft worker has {'0' * 64}"),
        (DrafterFacts("odd", vocab_size=999), "has 1000, draft worker has 999"),
        (DrafterFacts("odd", protocol_version=2), "has 1, draft worker has 2"),
    ],
    ids=["tokenizer", "vocabulary", "protocol"],
)
def test_a_worker_that_does_not_match_is_refused_with_both_values(
    verifier: Verifier, facts: DrafterFacts, reason: str
) -> None:
    with HostileDrafter(facts=facts) as odd:
        verifier.knows(odd.member())
        verifier.engine.start(*KEYS)
        verifier.until_state("odd", state="refused")
        assert verifier.reason("odd").endswith(reason)


def test_sessions_are_closed_on_the_worker_when_their_requests_end(verifier: Verifier) -> None:
    closed: list[int] = []

    def listening(heard: VerifierRound, honest: DrafterRound) -> tuple[DrafterRound]:
        closed.extend(close.session for close in heard.closes)
        return (honest,)

    with HostileDrafter(listening, DrafterFacts("a")) as worker:
        verifier.knows(worker.member())
        verifier.engine.start(*KEYS)
        verifier.until_accepted("a")
        verifier.engine.finish()
        verifier.engine.rounds_until(lambda: len(closed) == len(KEYS))
        assert sorted(closed) == list(range(1, len(KEYS) + 1))


def test_without_any_worker_no_round_waits(verifier: Verifier) -> None:
    verifier.engine.start(*KEYS)
    for _ in range(50):
        verifier.engine.round()
    assert verifier.counted("deadline_misses_total") == 0
    assert verifier.engine.answers_are_right()
