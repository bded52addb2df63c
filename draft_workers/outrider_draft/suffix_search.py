"""Compiled search of texts for what may follow: one call for a whole batch. `suffix_reference` says what comes out."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from outrider_draft.compiled import compiled, mix
from outrider_draft.suffix_path import Path, keep, look_ahead, most_frequent, new_path
from outrider_draft.suffix_rules import COUNTED, LEVELS, WALKED, SuffixRules, room
from outrider_draft.suffix_text import FREE, SEPARATOR, Rows, Text, open_text, slot_of

_room = compiled(room)
_STEPS = 4 * WALKED
"""Entries of a chain that are looked at at most: chains of different runs are one where their hashes are."""


class Query(NamedTuple):
    """What one session of a batch wants."""

    owner: int
    """Whose ids it may see."""
    depth: int
    """Ids to propose at most."""


Queries = NDArray[np.int64]
"""[batch, 2] int64, columns as in `Query`."""
_OWNER, _DEPTH = range(2)


class Drafts(NamedTuple):
    """Proposals of a batch; what lies beyond the count of a row means nothing."""

    token_ids: NDArray[np.int32]
    """[batch, depth]"""
    confidences: NDArray[np.float64]
    """[batch, depth]: estimates that an id and all before it are right."""
    counts: NDArray[np.int64]
    """[batch]"""


class _Places(NamedTuple):
    """Where an indexed run occurs, newest first."""

    ends: NDArray[np.int64]
    """Places after occurrences, [WALKED]."""
    lengths: NDArray[np.int64]
    """How many last ids of the context are there, [WALKED]."""


class _Search(NamedTuple):
    """One search, and room for what it finds."""

    context: NDArray[np.int32]
    owner: int
    depth: int
    rules: SuffixRules
    seed: np.uint64
    places: _Places
    path: Path
    token_ids: NDArray[np.int32]
    confidences: NDArray[np.float64]
    """The best draft so far, [depth]."""


class _Lengths(NamedTuple):
    """Runs of one level: the shortest and the longest one, and the most that any of them may propose."""

    shortest: int
    longest: int
    room: int


class _Found(NamedTuple):
    """The best draft so far: how many ids, and the sum of their estimates."""

    length: int
    score: float


@compiled
def search_batch(queries: Queries, own: Rows, shared: Rows, rules: SuffixRules, seed: np.uint64) -> Drafts:
    """The best draft for each session, from its own text and from those that all share.

    Args:
        queries: the sessions.
        own: [batch, 9] the text of each, which is its context.
        shared: [n, 9] further texts.
        rules: how far a proposal may go.
        seed: start of every hash, as the texts were indexed.
    """
    batch = queries.shape[0]
    deepest = 1
    for index in range(batch):
        deepest = max(deepest, queries[index, _DEPTH])
    drafts = Drafts(
        np.empty((batch, deepest), np.int32), np.empty((batch, deepest), np.float64), np.zeros(batch, np.int64)
    )
    places, path = _Places(np.empty(WALKED, np.int64), np.empty(WALKED, np.int64)), new_path(deepest)
    for index in range(batch):
        text, owner, depth = open_text(own[index]), queries[index, _OWNER], queries[index, _DEPTH]
        into, estimates = drafts.token_ids[index], drafts.confidences[index]
        search = _Search(text.ids[: text.end], owner, depth, rules, seed, places, path, into, estimates)
        found = _search_text(text, search, _Found(0, 0.0))
        for other in range(shared.shape[0]):
            found = _search_text(open_text(shared[other]), search, found)
        drafts.counts[index] = found.length
    return drafts


@compiled
def _search_text(text: Text, search: _Search, found: _Found) -> _Found:
    """The better one of what was found and what this text has. Tries the levels from the top."""
    longest = min(search.rules.max_depth - 1, search.context.shape[0])
    for level in range(len(LEVELS) - 1, -1, -1):
        top = longest if level == len(LEVELS) - 1 else min(longest, LEVELS[level + 1] - 1)
        most = 0
        for length in range(LEVELS[level], top + 1):
            most = max(most, _room(search.rules, length, search.depth))
        if most > found.score:  # no estimate exceeds 1
            count = _walk(text, search, level, longest)
            if count > 0:
                found = _search_level(text, search, _Lengths(LEVELS[level], top, most), count, found)
    return found


@compiled
def _search_level(text: Text, search: _Search, lengths: _Lengths, count: int, found: _Found) -> _Found:
    """The better one of what was found and what runs of one level give; those with the most room first."""
    search.path.tried[:] = False
    for space in range(lengths.room, 0, -1):
        if space <= found.score:
            break
        for length in range(lengths.longest, lengths.shortest - 1, -1):
            if _room(search.rules, length, search.depth) == space:
                agreeing = _select(search, count, length)
                # As many places are the same places, unless some were not counted, and had more room already.
                if agreeing > 0 and (agreeing == COUNTED or not search.path.tried[agreeing]):
                    search.path.tried[agreeing] = True
                    found = _follow(text, search, agreeing, space, found)
    return found


@compiled
def _walk(text: Text, search: _Search, level: int, longest: int) -> int:
    """Note where the last ids of the context occur, by the chain of one level. Returns how many places there are."""
    state = mix(search.seed, np.int32(search.owner)) if text.owners.shape[0] > 0 else search.seed
    for back in range(LEVELS[level]):
        state = mix(state, search.context[search.context.shape[0] - 1 - back])
    entry = text.tables[level, slot_of(state, text.tables.shape[1])]
    found, newer = 0, text.end
    for _ in range(_STEPS):
        if entry == FREE or found == WALKED:
            break
        index = entry - 1
        place = text.end - 1 - (text.end - 1 - index) % text.capacity
        if place >= newer or place < text.first:  # overwritten since, or forgotten
            break
        newer = place
        entry = text.chains[level, index]
        if text.is_open and place == text.end - 1:  # the last ids of the context themselves
            continue
        matched = _match(text, search, place, longest)
        if matched >= LEVELS[level]:
            search.places.ends[found] = place + 1
            search.places.lengths[found] = matched
            found += 1
    return found


@compiled
def _match(text: Text, search: _Search, place: int, longest: int) -> int:
    """How many last ids of the context end at a place, at most `longest`; 0 if they are not the owner's."""
    index = place % text.capacity
    if text.owners.shape[0] > 0 and text.owners[index] != search.owner:
        return 0
    last = search.context.shape[0] - 1
    for back in range(longest):
        if back > place or text.ids[index] != search.context[last - back]:
            return back
        index = index - 1 if index > 0 else text.capacity - 1
    return longest


@compiled
def _select(search: _Search, count: int, length: int) -> int:
    """Begin a path at the newest places where at least `length` ids match. Returns how many there are."""
    selected = 0
    for index in range(count):
        if search.places.lengths[index] >= length and selected < COUNTED:
            search.path.ends[selected] = search.places.ends[index]
            selected += 1
    return selected


@compiled
def _follow(text: Text, search: _Search, agreeing: int, space: int, found: _Found) -> _Found:
    """Go on with the id that follows most often, as long as it is likely enough; keep the path if it is better."""
    path = search.path
    length, score, confidence = 0, 0.0, 1.0
    while length < space:
        agreeing = look_ahead(text, path, agreeing, length)
        if agreeing == 0:
            break
        best = most_frequent(path, agreeing)
        token, most = path.distinct[best], path.counts[best]
        confidence *= most / agreeing
        if token == SEPARATOR or confidence < search.rules.min_token_prob:
            break
        path.token_ids[length] = token
        path.confidences[length] = confidence
        score += confidence
        length += 1
        agreeing = keep(path, agreeing, token)
    if score <= found.score:
        return found
    search.token_ids[:length] = path.token_ids[:length]
    search.confidences[:length] = path.confidences[:length]
    return _Found(length, score)
