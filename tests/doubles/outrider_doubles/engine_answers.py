"""What an engine answers, and drafts of which some are right."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from outrider_doubles.engine_bench import EngineBench
from outrider_doubles.scripted_speculator import ScriptedSpeculator
from outrider_doubles.tiny_tokenizer import TINY_VOCAB_SIZE
from outrider_wire.generation import GenerationRequest
from outrider_wire.sampling import SamplingParams

NEW_TOKENS = 40


def answers(bench: EngineBench, prompts: Sequence[tuple[int, ...]], temperature: float) -> list[tuple[int, ...]]:
    """Prompt and output of each request, all of them at once."""
    sampling = SamplingParams(temperature=temperature, max_tokens=NEW_TOKENS, ignore_eos=True)
    sinks = [bench.submit(GenerationRequest(prompt_token_ids=prompt, sampling=sampling), seed=7) for prompt in prompts]
    bench.run()
    return [(*prompt, *sink.token_ids) for prompt, sink in zip(prompts, sinks, strict=True)]


def half_right(known: Sequence[tuple[int, ...]]) -> ScriptedSpeculator:
    """Proposes what is known to follow, with every fourth id or so replaced."""
    random = Random(0)

    def propose(ids: Sequence[int], depth: int) -> list[int]:
        text = next(text for text in known if text[: len(ids)] == tuple(ids))
        following = text[len(ids) : len(ids) + depth]
        return [random.randrange(TINY_VOCAB_SIZE) if random.random() < 0.25 else token for token in following]

    return ScriptedSpeculator(propose, random, hit_rate=0.8)
