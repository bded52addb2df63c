"""Few cases that hold every pair of values of any two fields: faults rarely need three."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from itertools import combinations
from random import Random

Case = dict[str, Hashable]
Pair = frozenset[tuple[str, Hashable]]


def possible_pairs(fields: Mapping[str, Sequence[Hashable]], contradictory: Collection[Pair] = ()) -> set[Pair]:
    """All pairs of values of two fields, but those that cannot be together."""
    pairs = {
        frozenset({(one, a), (two, b)})
        for one, two in combinations(fields, 2)
        for a in fields[one]
        for b in fields[two]
    }
    return pairs - set(contradictory)


def all_pairs(
    fields: Mapping[str, Sequence[Hashable]], random: Random, contradictory: Collection[Pair] = (), tries: int = 40
) -> list[Case]:
    """Cases, each with a value for every field, such that every possible pair of values meets in one of them.

    Greedy: each case begins with a pair that is missing, and is the best of `tries` random completions.
    """
    missing = possible_pairs(fields, contradictory)
    cases: list[Case] = []
    while missing:
        seed = min(missing, key=lambda pair: sorted(map(repr, pair)))
        drawn = [{name: random.choice(values) for name, values in fields.items()} | dict(seed) for _ in range(tries)]
        coherent = [case for case in drawn if pairs_of(case).isdisjoint(contradictory)]
        best = max(coherent, key=lambda case: len(missing & pairs_of(case)))
        missing -= pairs_of(best)
        cases.append(best)
    return cases


def pairs_of(case: Case) -> set[Pair]:
    """All pairs of values in a case."""
    return {frozenset(pair) for pair in combinations(case.items(), 2)}
