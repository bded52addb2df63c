"""POST /v1/completions: prompts as text or ids, one or many."""

from __future__ import annotations

from collections.abc import Sequence

from outrider_cluster.gateway.answers import Json, Positions
from outrider_cluster.gateway.intake import Intake
from outrider_cluster.gateway.openai_models import DEFAULT_COMPLETION_TOKENS, CompletionBody
from outrider_cluster.gateway.spelled_logprobs import completion_logprobs
from outrider_runtime.errors import InvalidRequest, Words
from outrider_wire.generation import GenerationRequest

Prompt = str | tuple[int, ...]

_FORMS = "text, a list of texts, a list of token ids, or a list of such lists"


class CompletionDialect:
    """How the completions API spells an answer."""

    object_name = "text_completion"
    chunk_name = "text_completion"
    prompts_per_choice = True

    def choice(self, index: int, text: str, finish_reason: str, logprobs: Positions | None) -> Json:
        """A whole choice."""
        return self.piece(index, text, finish_reason, logprobs)

    def opening(self, index: int) -> None:
        """Completions begin with their text."""
        return None

    def piece(self, index: int, text: str, finish_reason: str | None, logprobs: Positions | None) -> Json:
        """A further piece of a choice."""
        spelled = None if logprobs is None else completion_logprobs(logprobs)
        return {"index": index, "text": text, "logprobs": spelled, "finish_reason": finish_reason}


async def completion_requests(body: CompletionBody, intake: Intake, max_prompts: int) -> tuple[GenerationRequest, ...]:
    """One checked request per prompt, each answered as if it had come alone: without a seed in the body, with its own.

    Raises:
        OutriderError: as `Intake.prepare`, and InvalidRequest for prompts of no known form.
    """
    sampling = body.sampling(DEFAULT_COMPLETION_TOKENS)
    prepared: list[GenerationRequest] = []
    for prompt in prompts_of(body.prompt, max_prompts):
        request = GenerationRequest(
            model=body.model or "",
            prompt_text=prompt if isinstance(prompt, str) else None,
            prompt_token_ids=None if isinstance(prompt, str) else prompt,
            sampling=sampling,
            speculation=body.speculation_options(),
        )
        prepared.append(await intake.prepare(request))
    return tuple(prepared)


def prompts_of(value: object, max_prompts: int) -> Sequence[Prompt]:
    """The prompts in a `prompt` field.

    Raises:
        InvalidRequest: it has none of OpenAI's four forms, or too many prompts.
    """
    if isinstance(value, str):
        return [value]
    if not isinstance(value, list) or not value:
        raise InvalidRequest("prompt", value, _FORMS)
    if _is_ids(value):
        return [tuple(value)]
    if len(value) > max_prompts:
        raise InvalidRequest("prompt", Words(f"{len(value)} prompts"), f"at most {max_prompts} prompts in one request")
    if all(isinstance(item, str) for item in value):
        return value
    if all(isinstance(item, list) and _is_ids(item) for item in value):
        return [tuple(item) for item in value]
    raise InvalidRequest("prompt", value, _FORMS)


def _is_ids(items: list[object]) -> bool:
    return all(type(item) is int for item in items)
