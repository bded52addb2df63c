"""Proposals by suffix, slow and obviously right: the specification of `suffix_search`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from outrider_draft.suffix_rules import COUNTED, LEVELS, WALKED, SuffixRules, room

Ids = tuple[int, ...]


class Text(NamedTuple):
    """What is searched: documents, oldest first."""

    documents: Sequence[Ids]
    is_open: bool
    """The only document is the context itself: nobody knows yet what follows its end."""


class Draft(NamedTuple):
    """Ids that may follow, and the estimate for each that it and all before it do."""

    token_ids: Ids = ()
    confidences: tuple[float, ...] = ()
    score: float = 0.0
    """Sum of the confidences: how many of the ids are expected to be right."""


class _Place(NamedTuple):
    document: Ids
    end: int
    """Ids of the document up to and including an occurrence."""


def propose_by_suffix(context: Ids, texts: Sequence[Text], rules: SuffixRules, depth: int) -> Draft:
    """The draft with the highest score of all texts and all lengths of the last run of ids.

    Between equal scores the earlier text counts, and within a text the run of the higher level, then the one with
    more room, then the longer one.

    Args:
        context: committed ids.
        texts: the context's own text first.
        rules: as in SuffixDecoding (arXiv 2411.04975).
        depth: ids to propose at most.
    """
    best = Draft()
    for text in texts:
        lengths = range(1, 1 + min(rules.max_depth - 1, len(context)))
        for length in sorted(lengths, key=lambda length: (_level(length), room(rules, length, depth), length))[::-1]:
            places = list(islice(_places(context, text, length), COUNTED))
            draft = _follow(places, text, rules, room(rules, length, depth))
            best = max(best, draft, key=lambda draft: draft.score)
    return best


def _level(length: int) -> int:
    """The longest indexed run that is no longer than a run."""
    return max(level for level in LEVELS if level <= length)


def _places(context: Ids, text: Text, length: int) -> Iterator[_Place]:
    """Where the last `length` ids occur, newest first."""
    level = _level(length)
    places = (
        _Place(document, end)
        for document in reversed(text.documents)
        for end in range(len(document) - text.is_open, 0, -1)
        if document[max(0, end - level) : end] == context[-level:]
    )
    for place in islice(places, WALKED):
        if place.document[max(0, place.end - length) : place.end] == context[-length:]:
            yield place


def _follow(places: list[_Place], text: Text, rules: SuffixRules, room: int) -> Draft:
    """Go on with the id that follows most often (of equals the newest), as long as it is likely enough."""
    ids: Ids = ()
    confidences: tuple[float, ...] = ()
    confidence = 1.0
    while len(ids) < room:
        following = [(place, _following(place, len(ids))) for place in places]
        if text.is_open:
            following = [(place, token) for place, token in following if token is not None]
        if not following:
            break
        counts = Counter(token for _, token in following)
        token, count = max(counts.items(), key=lambda item: item[1])
        confidence *= count / len(following)
        if token is None or confidence < rules.min_token_prob:
            break
        ids, confidences = (*ids, token), (*confidences, confidence)
        places = [place for place, other in following if other == token]
    return Draft(ids, confidences, sum(confidences))


def _following(place: _Place, offset: int) -> int | None:
    """The id so many places after an occurrence; None at the end of its document."""
    position = place.end + offset
    return place.document[position] if position < len(place.document) else None
