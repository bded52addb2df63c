"""Prompt lookup, slow and obviously right: the specification of `ngram_proposer`."""

from __future__ import annotations

from collections.abc import Sequence

from outrider_draft.config import LookupBounds


def propose_by_lookup(token_ids: Sequence[int], bounds: LookupBounds, depth: int) -> tuple[int, ...]:
    """What followed the longest run of last ids where it occurred first.

    The run is a suffix of `token_ids` with a length within `bounds` that also occurs earlier (overlap is allowed);
    the longest one counts, and of its occurrences the earliest. These are the rules of vLLM's n-gram proposer.

    Args:
        token_ids: committed ids.
        bounds: shortest and longest run to look up.
        depth: ids to propose at most.

    Returns:
        At most `depth` ids, fewer when the sequence ends before; none if no run occurs earlier.
    """
    ids = tuple(token_ids)
    for length in range(bounds.longest, bounds.shortest - 1, -1):
        suffix = ids[len(ids) - length :]
        for start in range(len(ids) - length):
            if ids[start : start + length] == suffix:
                return ids[start + length : start + length + depth]
    return ()
