"""What the status says of one draft pool: its workers, and how its drafts fare at all targets together. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest

from outrider_cluster.gateway.answers import Json
from outrider_wire.registry import Member, MemberState, PoolWishes, Snapshot


def pool_status(name: str, snapshot: Snapshot) -> Json:
    """A pool as the status lists it. Shares are of what was counted since the targets' start; null before anything was.

    Args:
        name: the pool's.
        snapshot: all members.
    """
    workers = [member for member in snapshot.members if member.draft is not None and member.draft.pool == name]
    wishes = _wishes(name, snapshot.members)
    wished, answers = sum(w.wished for w in wishes), _sum(w.answers for w in wishes)
    dropped, choices = _sum(w.dropped for w in wishes), _sum(w.choices for w in wishes)
    return {
        "pool": name,
        "workers": len(workers),
        "ready": sum(member.state is MemberState.READY for member in workers),
        "sessions": sum(member.draft.sessions for member in workers if member.draft is not None),
        "late_ratio": sum(w.late for w in wishes) / wished if wished else None,
        "unserved_ratio": sum(w.unserved for w in wishes) / wished if wished else None,
        "empty_ratio": answers["empty"] / answers.total() if answers else None,
        "dropped_ratio": _shares(dropped, answers.total()),
        "choice_ratio": _shares(choices, choices.total()),
        "acceptance": _acceptance(wishes),
        **_lost(name, snapshot),
    }


def _lost(name: str, snapshot: Snapshot) -> Json:
    """Workers that the pool has lost since the controller's start; null where it lost none."""
    losses = next((losses for losses in snapshot.losses if losses.pool == name), None)
    if losses is None:
        return {"lost_workers": 0, "last_lost": None}
    last = losses.last
    shown = {"worker": last.incarnation, "how": last.how.value, "fault": last.fault, "ago_s": last.ago_s}
    return {"lost_workers": losses.count, "last_lost": shown}


def drafting_status(wishes: PoolWishes) -> Json:
    """What one target has wanted of a pool since its start, and what came of it."""
    return {
        "pool": wishes.pool,
        "wished": wishes.wished,
        "late": wishes.late,
        "unserved": wishes.unserved,
        "verified": wishes.verified,
        "accepted_tokens": wishes.accepted_tokens,
        "answers": dict(wishes.answers),
        "dropped": dict(wishes.dropped),
        "choices": dict(wishes.choices),
        "acceptance": list(wishes.acceptance),
    }


def _wishes(pool: str, members: Iterable[Member]) -> list[PoolWishes]:
    targets = [member.target for member in members if member.target is not None]
    return [wishes for target in targets for wishes in target.pool_wishes if wishes.pool == pool]


def _sum(counts: Iterable[Mapping[str, int]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for part in counts:
        total.update(part)
    return total


def _shares(counts: Mapping[str, int], of: int) -> dict[str, float]:
    return {word: count / of for word, count in sorted(counts.items())} if of else {}


def _acceptance(wishes: Sequence[PoolWishes]) -> list[float]:
    """By position the mean over targets that have seen it, weighted by their verified proposals."""
    columns = zip_longest(*([(share, w.verified) for share in w.acceptance] for w in wishes if w.verified))
    return [_mean([cell for cell in column if cell is not None]) for column in columns]


def _mean(weighted: Sequence[tuple[float, int]]) -> float:
    weights = sum(weight for _, weight in weighted)
    return sum(share * weight for share, weight in weighted) / weights if weights else 0.0
