"""What workers may say, truthfully or not, and what becomes of their sessions."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from outrider_doubles.drafting_bench import DraftingBench, spec

from outrider_target.drafting.conduct import Offence
from outrider_target.drafting.settings import DraftingSettings
from outrider_target.drafting.speculator import Ask, Proposal
from outrider_wire.drafting import Chain, CloseOutcome, DrafterRound, Load, Refusal, ResyncRequest


def asked(*workers: str, settings: DraftingSettings | None = None) -> DraftingBench:
    """One request that has committed 4 ids and would like 4 more, from workers that have not answered yet."""
    bench = DraftingBench(settings)
    for name in workers:
        bench.connect(name)
    bench.book.open(spec(7))
    bench.commit(7, 3, 4)
    return bench


def proposal(bench: DraftingBench) -> Proposal | None:
    return bench.book.collect([Ask(7, 4, 4)], step_time_s=1e-9).proposals.get(7)


def lie(bench: DraftingBench, name: str, **changes: object) -> Offence | None:
    (chain,) = bench.answers(name).chains
    return bench.deliver(name, DrafterRound((replace(chain, **changes),)))  # type: ignore[arg-type]


def test_an_honest_answer_is_a_proposal() -> None:
    bench = asked("a")
    bench.exchange()
    assert proposal(bench) == Proposal((5, 6, 7, 8), "pool", "a")


@pytest.mark.parametrize(
    "changes",
    [
        {"token_ids": (5, 1000)},
        {"token_ids": (-1,)},
        {"token_ids": tuple(range(9))},
        {"base_length": 5},
        {"confidences": (0.5,)},
        {"epoch": 2},
    ],
    ids=["beyond the vocabulary", "negative", "too many", "never sent base", "confidences", "epoch from the future"],
)
def test_a_malformed_chain_costs_the_worker_the_session_which_goes_elsewhere(changes: dict[str, object]) -> None:
    bench = asked("a", "b")
    liar = bench.holder()
    assert liar is not None
    assert lie(bench, liar, **changes) is None
    assert bench.dropped("malformed") == 1
    assert bench.holder() not in (liar, None)
    assert proposal(bench) is None
    bench.exchange()
    assert proposal(bench) is not None
    assert not bench.remote[liar].sessions


def test_a_session_that_was_lied_about_never_returns_but_new_ones_come() -> None:
    bench = asked("a")
    lie(bench, "a", token_ids=(-1,))
    bench.commit(7, 4, 5)
    assert bench.holder() is None
    bench.book.open(spec(8))
    assert bench.holder(2) == "a"


def test_repeated_malformed_rows_are_an_offence_and_the_rest_of_the_frame_is_ignored() -> None:
    bench = DraftingBench(DraftingSettings(malformed_rows=2))
    bench.connect("a")
    for key in (1, 2, 3):
        bench.book.open(spec(key))
        bench.commit(key, 3, 4)
    lies = DrafterRound(tuple(replace(chain, token_ids=(-1,)) for chain in bench.answers("a").chains))
    assert bench.deliver("a", lies) is Offence.MALFORMED_ROWS
    assert bench.dropped("malformed") == 2


def test_the_same_key_with_other_ids_is_malformed_and_with_the_same_ids_a_duplicate() -> None:
    bench = asked("a")
    answers = bench.answers("a")
    bench.deliver("a", answers)
    bench.deliver("a", answers)
    assert bench.dropped("duplicate") == 1 and proposal(bench) is not None
    bench.deliver("a", DrafterRound((replace(answers.chains[0], token_ids=(5, 9)),)))
    assert bench.dropped("malformed") == 1 and proposal(bench) is None


def test_a_worker_cannot_speak_for_another_one() -> None:
    bench = asked("a", "b")
    holder = bench.holder()
    other = "b" if holder == "a" else "a"
    forged = replace(bench.answers(str(holder)).chains[0], token_ids=(9, 9))
    bench.deliver(other, DrafterRound((forged,), (ResyncRequest(1, 1, 0),), (Refusal(1, 1),)))
    assert bench.dropped("unknown_session") == 1
    assert bench.holder() == holder and proposal(bench) is None


def test_an_answer_to_a_closed_session_is_unknown_and_harmless() -> None:
    bench = asked("a")
    answers = bench.answers("a")
    bench.book.close(7, CloseOutcome.FINISHED)
    assert bench.deliver("a", answers) is None
    assert bench.dropped("unknown_session") == 1


def test_an_answer_of_an_earlier_epoch_is_stale() -> None:
    bench = asked("a")
    answers = bench.answers("a")
    bench.deliver("a", DrafterRound(resyncs=(ResyncRequest(1, 1, 0),)))
    bench.deliver("a", answers)
    assert bench.dropped("stale") == 1 and proposal(bench) is None
    bench.exchange()
    assert proposal(bench) is not None


def test_an_answer_after_its_round_is_late() -> None:
    bench = asked("a")
    answers = bench.answers("a")
    bench.commit(7, 4, 9)
    bench.deliver("a", answers)
    assert bench.dropped("late") == 1


def test_a_resync_opens_the_session_anew_from_its_ids() -> None:
    bench = asked("a")
    bench.exchange()
    bench.remote["a"].sessions[1].ids.clear()
    bench.deliver("a", DrafterRound(resyncs=(ResyncRequest(1, 1, 0),)))
    bench.exchange()
    session = bench.remote["a"].sessions[1]
    assert (session.epoch, session.ids) == (2, [1, 2, 3, 4])
    assert bench.counted("resyncs_total", pool="pool") == 1


def test_a_worker_that_only_resyncs_loses_the_session() -> None:
    bench = asked("a", settings=DraftingSettings(resyncs_per_session=2))
    for epoch in (1, 2, 3):
        bench.answers("a")
        bench.deliver("a", DrafterRound(resyncs=(ResyncRequest(1, epoch, 0),)))
    assert bench.holder() is None


def test_a_refused_session_goes_to_the_next_worker_and_may_return_later() -> None:
    bench = asked("a", "b")
    order = []
    for _ in range(2):
        holder = bench.holder()
        assert holder is not None
        order.append(holder)
        bench.answers(holder)
        epoch = bench.remote[holder].sessions[1].epoch
        bench.deliver(holder, DrafterRound(refusals=(Refusal(1, epoch),)))
    assert sorted(order) == ["a", "b"] and bench.holder() is None
    bench.commit(7, 4, 5)
    assert bench.holder() is None
    bench.clock.advance(bench.settings.refusal_retry_ms / 1e3)  # type: ignore[attr-defined]
    bench.commit(7, 5, 6)
    assert bench.holder() is not None


def test_nothing_is_asked_for_twice_after_the_same_ids() -> None:
    bench = asked("a")
    bench.exchange()
    bench.commit(7, 4, depth=2)
    bench.commit(7, 4, depth=0)
    bench.commit(7, 4, depth=3)
    bench.exchange()
    assert bench.remote["a"].asked == 1
    bench.commit(7, 4, 5, depth=3)
    bench.exchange()
    assert bench.remote["a"].asked == 2


def test_a_flood_is_an_offence_and_is_not_even_read() -> None:
    bench = asked("a", settings=DraftingSettings(unsolicited_rows=16))
    assert bench.deliver("a", DrafterRound((Chain(99, 1, 0, (1,)),) * 100)) is Offence.FLOOD
    assert bench.dropped("unknown_session") == 0


def test_load_steers_new_sessions_to_room() -> None:
    bench = DraftingBench()
    bench.connect("full")
    bench.connect("free")
    bench.deliver("full", DrafterRound(load=Load(queued_rows=0, free_sessions=0, draft_time_us=10)))
    for key in range(20):
        bench.book.open(spec(key))
    assert len(bench.links["free"].sessions) == 20


chains = st.builds(
    Chain,
    session=st.integers(0, 3),
    epoch=st.integers(0, 3),
    base_length=st.integers(-2, 6),
    token_ids=st.lists(st.integers(-2, 1001), max_size=5).map(tuple),
    confidences=st.lists(st.floats(), max_size=3).map(tuple),
)
frames = st.builds(
    DrafterRound,
    chains=st.lists(chains, max_size=3).map(tuple),
    resyncs=st.lists(st.builds(ResyncRequest, st.integers(0, 3), st.integers(0, 3), st.integers()), max_size=2).map(
        tuple
    ),
    refusals=st.lists(st.builds(Refusal, st.integers(0, 3), st.integers(0, 3)), max_size=2).map(tuple),
)


@given(frames=st.lists(st.tuples(st.sampled_from("ab"), frames), max_size=12))
def test_no_frame_whatever_raises_and_what_is_proposed_is_in_range(frames: list[tuple[str, DrafterRound]]) -> None:
    bench = asked("a", "b")
    for name, frame in frames:
        bench.answers(name)
        bench.deliver(name, frame)
        for link in bench.links.values():
            for _ in range(3):
                link.breaker.miss()
        found = proposal(bench)
        assert found is None or (len(found.token_ids) <= 4 and all(0 <= token < 1000 for token in found.token_ids))
    bench.book.close(7, CloseOutcome.ABORTED)
    assert bench.book.session_count() == 0 and bench.holder() is None
