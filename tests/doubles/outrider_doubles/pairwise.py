"""Few cases that hold every pair of values of any two fields: faults rarely need three."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from itertools import combinations
from random import Random

Case = dict[str, Hashable]
Pair = frozenset[tuple[str, Hashable]]


def all_pairs(fields: Mapping[str, Sequence[Hashable]], random: Random, tries: int = 40) -> list[Case]:
    """Cases, each with a value for every field, such that every pair of values meets in one of them.

    Greedy: each case begins with a pair that is missing, and is the best of `tries` random completions.
    """
    missing = {
        frozenset({(one, a), (two, b)})
        for one, two in combinations(fields, 2)
        for a in fields[one]
        for b in fields[two]
    }
    cases: list[Case] = []
    while missing:
        seed = min(missing, key=repr)
        drawn = [{name: random.choice(values) for name, values in fields.items()} | dict(seed) for _ in range(tries)]
        best = max(drawn, key=lambda case: len(missing & pairs_of(case)))
        missing -= pairs_of(best)
        cases.append(best)
    return cases


def pairs_of(case: Case) -> set[Pair]:
    """All pairs of values in a case."""
    return {frozenset(pair) for pair in combinations(case.items(), 2)}
