"""Members with what replica control looks at."""

from __future__ import annotations

from typing import Any

from outrider_wire.registry import (
    DraftMember,
    GatewayMember,
    Member,
    MemberKind,
    MemberState,
    PoolWishes,
    TargetMember,
)


def target(name: str, *wishes: PoolWishes, **load: Any) -> Member:
    """A ready target that has wanted this of its pools; `load` sets further fields of `TargetMember`."""
    facts = {
        "model": "m",
        "running": 0,
        "waiting": 0,
        "kv_usage": 0.0,
        "exact": True,
        "exact_reason": "",
        "depth": 4,
        "depth_reason": "",
        "tokenizer_fingerprint": "f",
        "vocab_size": 9,
        "max_model_len": 9,
    }
    member = TargetMember(**{**facts, **load}, pool_wishes=wishes)
    return Member(name, MemberKind.TARGET, MemberState.READY, "h:1", "n", 1, target=member)


def draft(name: str, pool: str, busy_s: float = 0.0, queued_rows: int = 0) -> Member:
    """A ready draft worker."""
    member = DraftMember(pool, "ngram", 0, 9, busy_s=busy_s, queued_rows=queued_rows)
    return Member(name, MemberKind.DRAFT, MemberState.READY, "h:1", "n", 1, draft=member)


def gateway(name: str, in_flight: int, max_in_flight: int) -> Member:
    """A ready gateway."""
    member = GatewayMember(in_flight, max_in_flight)
    return Member(name, MemberKind.GATEWAY, MemberState.READY, "h:1", "n", 1, gateway=member)
