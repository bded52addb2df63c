"""How people are told what the arbiter of pools did with one.

The status and the metric call the pool that is ranked first `best`, whatever it is worth: among pools that bring
nothing, too, one is. Beside shares of a pool that proposes nothing that word would mislead.
"""

from __future__ import annotations

from collections.abc import Mapping

CHOICE_WORDS: Mapping[str, str] = {
    "best": "first",
    "worth its time": "worth its time",
    "explored": "explored",
    "spared": "spared",
}
"""Words for people by the words of the metric, in the order in which they are shown."""


def in_words(shares: Mapping[str, float]) -> dict[str, float]:
    """Shares by the words for people; what is not known here keeps its word."""
    return {CHOICE_WORDS.get(choice, choice): share for choice, share in shares.items()}
