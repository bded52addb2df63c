"""Requests whose answers the toy law fixes beforehand, and a draft worker's oracle that knows them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from random import Random

from outrider_doubles.engine_bench import expected_ids
from outrider_doubles.toy_forward import ToyForward
from outrider_wire.generation import GenerationRequest
from outrider_wire.sampling import SamplingParams, SpeculationOptions

QUESTIONS = 16
"""Different requests; they are asked again and again."""
_SAMPLINGS = (
    SamplingParams(ignore_eos=True),
    SamplingParams(temperature=1.0, ignore_eos=True),
    SamplingParams(temperature=1.0, top_p=0.9, ignore_eos=True),
    SamplingParams(temperature=0.7, top_k=20, min_p=0.01, ignore_eos=True),
)
_DEPTHS = (None, None, None, 2)


@dataclass(frozen=True, slots=True)
class Question:
    """A request and the only right answer to it."""

    request: GenerationRequest
    seed: int
    answer: tuple[int, ...]

    @property
    def law(self) -> tuple[int, ...]:
        """Prompt and answer."""
        return (*(self.request.prompt_token_ids or ()), *self.answer)


@cache
def question(number: int, vocab_size: int) -> Question:
    """Request `number`, in [0, QUESTIONS). Every fourth one is greedy; its first two ids tell which one it is."""
    random = Random(number)
    prompt = (*divmod(number, 4), *(random.randrange(vocab_size) for _ in range(random.randrange(1, 40))))
    sampling, count, seed = _SAMPLINGS[number % 4], random.randrange(20, 48), random.getrandbits(64)
    request = GenerationRequest(
        request_id=str(number),
        prompt_token_ids=prompt,
        sampling=SamplingParams(
            temperature=sampling.temperature,
            top_k=sampling.top_k,
            top_p=sampling.top_p,
            min_p=sampling.min_p,
            seed=seed,
            max_tokens=count,
            ignore_eos=True,
        ),
        speculation=SpeculationOptions(max_depth=_DEPTHS[number // 4]),
    )
    answer = expected_ids(ToyForward(vocab_size), prompt, sampling, seed, count)
    return Question(request, seed, tuple(answer))


class Oracle:
    """An honest proposer that knows all answers, and is right for a number of ids that differs from place to place.

    Args:
        vocab_size: of the toy law; at least 4.
    """

    def __init__(self, vocab_size: int) -> None:
        self._vocab_size = vocab_size

    def __call__(self, ids: Sequence[int], depth: int) -> tuple[int, ...]:
        """Proposal after `ids`, which must be what the law says: a verifier that commits anything else is caught."""
        law = question(4 * ids[0] + ids[1], self._vocab_size).law
        assert tuple(ids) == law[: len(ids)], "what was committed is not what the law says"
        right = len(ids) % (depth + 1)
        following = law[len(ids) : len(ids) + depth]
        return (*following[:right], *((token + 1) % self._vocab_size for token in following[right:]))
