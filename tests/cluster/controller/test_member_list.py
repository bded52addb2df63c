"""Who counts as alive, and for how long."""

from __future__ import annotations

from outrider_cluster.controller.member_list import Heard, MemberList
from outrider_runtime.clock import ManualClock
from outrider_wire.registry import Member, MemberKind, MemberState

TTL_S = 5.0


def member(name: str, state: MemberState = MemberState.READY) -> Member:
    return Member(name, MemberKind.DRAFT, state, "127.0.0.1:1", "node", 1)


def names(members: MemberList) -> list[str]:
    return [found.incarnation for found in members.snapshot().members]


def test_members_are_listed_in_the_order_of_their_names() -> None:
    members = MemberList(ManualClock(), TTL_S)
    for name in ("b", "c", "a"):
        members.announce(member(name), "")
    assert names(members) == ["a", "b", "c"]


def test_the_last_word_of_a_member_counts() -> None:
    members = MemberList(ManualClock(), TTL_S)
    members.announce(member("a", MemberState.STARTING), "x")
    members.announce(member("a", MemberState.READY), "y")
    assert [found.state for found in members.snapshot().members] == [MemberState.READY]
    assert members.metrics() == {"a": "y"}


def test_a_silent_member_goes_after_its_time_and_others_stay() -> None:
    clock = ManualClock()
    members = MemberList(clock, TTL_S)
    members.announce(member("silent"), "its metrics")
    for _ in range(5):
        clock.advance(1.0)
        members.announce(member("lively"), "")
        assert members.expire() == ()
    clock.advance(0.5)
    assert members.expire() == (Heard(member("silent"), "its metrics", 0.0),)
    assert names(members) == ["lively"]


def test_a_member_that_leaves_is_gone_at_once() -> None:
    members = MemberList(ManualClock(), TTL_S)
    members.announce(member("a"), "its metrics")
    assert members.leave("a") == Heard(member("a"), "its metrics", 0.0)
    assert names(members) == []
    assert members.leave("a") is None


def test_a_process_that_did_not_listen_takes_nobody_for_dead() -> None:
    clock = ManualClock()
    members = MemberList(clock, TTL_S)
    members.announce(member("a"), "")
    members.announce(member("b"), "")
    clock.advance(60.0)  # stopped and continued
    assert members.expire() == ()
    members.announce(member("a"), "")
    assert members.expire() == ()
    assert names(members) == ["a", "b"]


def test_who_stays_silent_after_such_a_pause_goes_after_its_time() -> None:
    clock = ManualClock()
    members = MemberList(clock, TTL_S)
    members.announce(member("a"), "")
    members.announce(member("b"), "")
    clock.advance(60.0)
    members.announce(member("a"), "")
    for _ in range(6):
        clock.advance(1.0)
        members.announce(member("a"), "")
    assert [last.member.incarnation for last in members.expire()] == ["b"]
