"""Bad words as ids: each with and without a space before it, since tokenizers spell the two differently."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from outrider_runtime.errors import InvalidRequest


def bad_word_ids(words: Sequence[str], encode: Callable[[str], Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    """Runs of ids that spell the words, by vLLM's rule.

    Spaces before a word do not matter. With one space before it, it counts again only if that makes as many ids and
    another first one: a space that is an id of its own does not belong to the word.

    Args:
        words: as the client wrote them.
        encode: text to ids, without special tokens around them.

    Raises:
        InvalidRequest: a word is white space only.
    """
    runs: list[tuple[int, ...]] = []
    for at, word in enumerate(words):
        bare = tuple(encode(word.lstrip()))
        if not bare:
            raise InvalidRequest(f"bad_words[{at}]", word, "a word of more than white space")
        spaced = tuple(encode(f" {word.lstrip()}"))
        runs.append(bare)
        if len(spaced) == len(bare) and spaced[0] != bare[0]:
            runs.append(spaced)
    return tuple(runs)
