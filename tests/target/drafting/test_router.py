"""Rendezvous hashing of sessions over workers."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from outrider_target.drafting.router import Candidate, choose_worker

SESSIONS = range(1, 2001)


def workers(*names: str, room: int = 10) -> list[Candidate]:
    return [Candidate(name, room, healthy=True) for name in names]


@given(order=st.permutations(workers("a", "b", "c")), session=st.integers(1, 2**63))
def test_the_choice_depends_on_session_and_workers_alone(order: list[Candidate], session: int) -> None:
    assert choose_worker(session, order) == choose_worker(session, workers("a", "b", "c"))


def test_when_a_worker_leaves_only_its_sessions_move() -> None:
    before = {session: choose_worker(session, workers("a", "b", "c")) for session in SESSIONS}
    after = {session: choose_worker(session, workers("a", "b")) for session in SESSIONS}
    assert all(after[session] == worker for session, worker in before.items() if worker != "c")
    assert set(after.values()) == {"a", "b"}


def test_sessions_spread_in_proportion_to_room() -> None:
    candidates = [Candidate("small", 10, healthy=True), Candidate("large", 30, healthy=True)]
    counts = Counter(choose_worker(session, candidates) for session in SESSIONS)
    assert 0.7 < counts["large"] / len(SESSIONS) < 0.8


def test_a_healthy_worker_without_room_is_better_than_one_that_does_not_answer() -> None:
    candidates = [Candidate("silent", 100, healthy=False), Candidate("full", 0, healthy=True)]
    assert {choose_worker(session, candidates) for session in SESSIONS} == {"full"}


def test_a_worker_without_room_is_the_last_resort() -> None:
    candidates = [Candidate("full", 0, healthy=True), Candidate("free", 1, healthy=True)]
    assert {choose_worker(session, candidates) for session in SESSIONS} == {"free"}
    assert choose_worker(1, candidates[:1]) == "full"


def test_without_workers_there_is_no_choice() -> None:
    assert choose_worker(1, []) is None
