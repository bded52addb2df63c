"""Which target gets a request. Pure: a function of loads, suspicions and the request's affinity key."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence

from outrider_wire.registry import Member

AFFINITY_TOKENS = 64
"""Prompt ids that make up the affinity key when a client names no session: enough for most system prompts."""


def choose_target(
    candidates: Sequence[Member],
    in_flight: Mapping[str, int],
    suspects: Collection[str],
    affinity: bytes,
    slack: int,
) -> Member | None:
    """The target for a request, or None when there is no candidate.

    Among the candidates whose load is within `slack` of the smallest, requests with the same affinity key go to the
    same target (rendezvous hashing), so that they find their prefix in its cache. Suspects are the last resort.

    Args:
        candidates: ready targets.
        in_flight: choices that this gateway has there now, by incarnation.
        suspects: incarnations that were lost a moment ago.
        affinity: names what requests share.
        slack: requests that balance is worth giving up for a warm cache.
    """
    trusted = [member for member in candidates if member.incarnation not in suspects] or list(candidates)
    if not trusted:
        return None
    loads = {member.incarnation: _load(member, in_flight) for member in trusted}
    least = min(loads.values())
    near = [member for member in trusted if loads[member.incarnation] <= least + slack]
    return max(near, key=lambda member: _weight(affinity, member.incarnation))


def affinity_key(session: str | None, tenant: str, prompt_token_ids: Sequence[int]) -> bytes:
    """What requests with a common cache have in common: a session name, else the beginning of the prompt."""
    if session:
        return f"session\n{tenant}\n{session}".encode(errors="replace")
    return f"prompt\n{tenant}\n{','.join(map(str, prompt_token_ids[:AFFINITY_TOKENS]))}".encode()


def _load(member: Member, in_flight: Mapping[str, int]) -> int:
    """The target's own count misses what was just sent; ours misses what other gateways sent. The larger one counts."""
    reported = 0 if member.target is None else member.target.running + member.target.waiting
    return max(reported, in_flight.get(member.incarnation, 0))


def _weight(affinity: bytes, incarnation: str) -> bytes:
    return hashlib.blake2b(affinity + b"\n" + incarnation.encode(), digest_size=8).digest()
