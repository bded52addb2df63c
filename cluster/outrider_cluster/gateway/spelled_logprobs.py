"""Log-probabilities in text, as OpenAI's two APIs spell them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from outrider_wire.generation import GenerationDelta, TokenLogprobs

Json = dict[str, object]

LOWEST_LOGPROB = -9999.0
"""What OpenAI and vLLM say instead of negative infinity, which JSON cannot."""


@dataclass(frozen=True, slots=True)
class SpelledToken:
    """What a token spells on its own, perhaps only part of a character, and its log-probability."""

    spelling: bytes
    logprob: float

    @property
    def text(self) -> str:
        """As text; broken characters become U+FFFD."""
        return self.spelling.decode(errors="replace")

    @property
    def key(self) -> str:
        """A text that no other spelling has: incomplete characters show their bytes, as in OpenAI's completions."""
        try:
            return self.spelling.decode()
        except UnicodeDecodeError:
            return "bytes:" + "".join(f"\\x{byte:02x}" for byte in self.spelling)

    def as_chat(self) -> Json:
        """As the chat API has it."""
        return {"token": self.text, "logprob": self.logprob, "bytes": list(self.spelling)}


@dataclass(frozen=True, slots=True)
class SpelledPosition:
    """One token of an answer, the likeliest ones in its place, and how many characters its answer has before it."""

    token: SpelledToken
    top: tuple[SpelledToken, ...]
    offset: int


class Speller:
    """Spells the log-probabilities of one answer's choices; keeps where each has got to.

    Args:
        token_bytes: what an id spells on its own.
    """

    def __init__(self, token_bytes: Callable[[int], bytes]) -> None:
        self._token_bytes = token_bytes
        self._offsets: defaultdict[int, int] = defaultdict(int)

    def spell(self, delta: GenerationDelta) -> tuple[SpelledPosition, ...]:
        """Positions of the next piece of a choice."""
        positions = []
        for item in delta.logprobs:
            token = self._token(item.token_id, item.logprob)
            top = tuple(self._token(other.token_id, other.logprob) for other in item.top)
            positions.append(SpelledPosition(token, top, self._offsets[delta.index]))
            self._offsets[delta.index] += len(token.text)
        return tuple(positions)

    def _token(self, token_id: int, logprob: float) -> SpelledToken:
        return SpelledToken(self._token_bytes(token_id), max(logprob, LOWEST_LOGPROB))


def chat_logprobs(positions: Sequence[SpelledPosition]) -> Json:
    """`logprobs` of a chat choice."""
    content = [
        {**position.token.as_chat(), "top_logprobs": [other.as_chat() for other in position.top]}
        for position in positions
    ]
    return {"content": content, "refusal": None}


def completion_logprobs(positions: Sequence[SpelledPosition]) -> Json:
    """`logprobs` of a completions choice. The likeliest tokens hold the chosen one too, as OpenAI's do.

    Of several tokens that spell the same, the likeliest is shown.
    """
    tops = []
    for position in positions:
        top: dict[str, float] = {}
        for token in (*position.top, position.token):
            top.setdefault(token.key, token.logprob)
        tops.append(top)
    return {
        "tokens": [position.token.key for position in positions],
        "token_logprobs": [position.token.logprob for position in positions],
        "top_logprobs": tops,
        "text_offset": [position.offset for position in positions],
    }


def spelled_prompt(entries: Sequence[TokenLogprobs], token_bytes: Callable[[int], bytes]) -> list[Json | None]:
    """`prompt_logprobs` as vLLM has it: nothing for the first token, then logprob, rank and text by id."""

    def spelled(token_id: int, logprob: float, rank: int) -> Json:
        text = token_bytes(token_id).decode(errors="replace")
        return {"logprob": max(logprob, LOWEST_LOGPROB), "rank": rank, "decoded_token": text}

    prompt: list[Json | None] = [None]
    for entry in entries:
        position: Json = {str(entry.token_id): spelled(entry.token_id, entry.logprob, entry.rank)}
        for rank, other in enumerate(entry.top, start=1):
            position.setdefault(str(other.token_id), spelled(other.token_id, other.logprob, rank))
        prompt.append(position)
    return prompt
