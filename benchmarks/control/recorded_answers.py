"""What the real engine says to prompts, greedily and without drafts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from drafted_answers import Answer
from engine_under_test import LoadedModel, engine_under_test
from load_block import Prompt
from outrider_runtime.errors import OutriderError
from outrider_target.settings import TargetSettings
from outrider_wire.generation import GenerationDelta, GenerationRequest
from outrider_wire.sampling import SamplingParams


@dataclass(slots=True)
class KeptIds:
    """A sink that keeps the ids of one answer."""

    token_ids: list[int] = field(default_factory=list)

    def put(self, delta: GenerationDelta) -> None:
        """Keep a piece."""
        self.token_ids += delta.token_ids

    def fail(self, error: OutriderError) -> None:
        """A failed answer makes the recording worthless.

        Raises:
            OutriderError: that error.
        """
        raise error


def record_answers(
    model: LoadedModel, settings: TargetSettings, prompts: Sequence[Prompt], max_tokens: int
) -> list[Answer]:
    """Answers to all prompts, as long as the model likes them, `max_tokens` at most."""
    asked = [(prompt, model.chat_ids(prompt.text), KeptIds()) for prompt in prompts]
    with engine_under_test(model, settings, 0, 0) as subject:
        for _, ids, sink in asked:
            request = GenerationRequest(prompt_token_ids=ids, sampling=SamplingParams(max_tokens=max_tokens))
            subject.engine.submit(request, 0, sink)
        while subject.engine.step():
            pass
    return [Answer(prompt.kind, ids, tuple(sink.token_ids)) for prompt, ids, sink in asked]
