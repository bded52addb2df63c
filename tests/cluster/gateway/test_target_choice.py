from __future__ import annotations

from collections import Counter

from outrider_cluster.gateway.target_choice import affinity_key, choose_target
from outrider_wire.registry import Member, MemberKind, MemberState, TargetMember


def target(name: str, running: int = 0, waiting: int = 0) -> Member:
    facts = TargetMember("m", running, waiting, 0.0, True, "", 0, "", "", 10, 10)
    return Member(name, MemberKind.TARGET, MemberState.READY, "127.0.0.1:1", "n", 1, target=facts)


def chosen(
    candidates: list[Member], affinity: bytes = b"k", slack: int = 0, **more: dict[str, int] | set[str]
) -> str | None:
    in_flight = more.get("in_flight", {})
    assert isinstance(in_flight, dict)
    found = choose_target(candidates, in_flight, more.get("suspects", set()), affinity, slack)
    return None if found is None else found.incarnation


def test_without_candidates_nothing_is_chosen() -> None:
    assert chosen([]) is None


def test_the_least_loaded_target_is_chosen_whoever_counted_the_load() -> None:
    assert chosen([target("a", running=3), target("b", running=1, waiting=1)]) == "b"
    assert chosen([target("a", running=1), target("b")], in_flight={"b": 5}) == "a"


def test_requests_with_one_affinity_stay_together_within_the_slack_and_spread_otherwise() -> None:
    candidates = [target("a"), target("b"), target("c")]
    spread = Counter(chosen(candidates, f"key {i}".encode()) for i in range(300))
    assert len(spread) == 3 and min(spread.values()) > 50
    home = chosen(candidates, b"session")
    assert home is not None
    assert chosen(candidates, b"session", slack=2, in_flight={home: 2}) == home
    assert chosen(candidates, b"session", slack=2, in_flight={home: 3}) != home


def test_a_target_that_leaves_moves_only_its_own_sessions() -> None:
    three, two = [target("a"), target("b"), target("c")], [target("a"), target("b")]
    for i in range(100):
        before, after = chosen(three, f"{i}".encode()), chosen(two, f"{i}".encode())
        assert before in ("c", after)


def test_a_suspect_is_asked_only_when_nobody_else_is_there() -> None:
    busy, suspect = target("a", running=50), target("b")
    assert chosen([busy, suspect], suspects={"b"}) == "a"
    assert chosen([suspect], suspects={"b"}) == "b"


def test_a_session_name_decides_before_the_prompt_and_tenants_never_share_a_key() -> None:
    assert affinity_key("s", "", [1, 2]) == affinity_key("s", "", [3])
    assert affinity_key(None, "", [1, 2]) != affinity_key(None, "", [1, 3])
    assert affinity_key(None, "", [*range(64), 1]) == affinity_key(None, "", [*range(64), 2])
    assert affinity_key("s", "x", [1]) != affinity_key("s", "y", [1])
