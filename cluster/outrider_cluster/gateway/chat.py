"""POST /v1/chat/completions: a conversation, continued by the assistant."""

from __future__ import annotations

from outrider_cluster.gateway.answers import Json, Positions
from outrider_cluster.gateway.intake import Intake
from outrider_cluster.gateway.openai_models import ChatBody
from outrider_cluster.gateway.spelled_logprobs import chat_logprobs
from outrider_wire.generation import GenerationRequest


class ChatDialect:
    """How the chat API spells an answer."""

    object_name = "chat.completion"
    chunk_name = "chat.completion.chunk"
    prompts_per_choice = False

    def choice(self, index: int, text: str, finish_reason: str, logprobs: Positions | None) -> Json:
        """A whole choice."""
        message = {"role": "assistant", "content": text, "refusal": None}
        return {"index": index, "message": message, "logprobs": _spelled(logprobs), "finish_reason": finish_reason}

    def opening(self, index: int) -> Json:
        """The chunk that names the speaker."""
        return self._delta(index, {"role": "assistant", "content": ""}, None, None)

    def piece(self, index: int, text: str, finish_reason: str | None, logprobs: Positions | None) -> Json:
        """A further piece of a choice."""
        return self._delta(index, {"content": text} if text or logprobs else {}, finish_reason, logprobs)

    def _delta(self, index: int, delta: Json, finish_reason: str | None, logprobs: Positions | None) -> Json:
        return {"index": index, "delta": delta, "logprobs": _spelled(logprobs), "finish_reason": finish_reason}


def _spelled(logprobs: Positions | None) -> Json | None:
    return None if logprobs is None else chat_logprobs(logprobs)


async def chat_requests(body: ChatBody, intake: Intake) -> tuple[GenerationRequest, ...]:
    """The checked request of a conversation.

    Raises:
        OutriderError: as `Intake.prepare` and `Intake.apply_template`.
    """
    ids = await intake.apply_template([message.for_template() for message in body.messages])
    request = GenerationRequest(
        model=body.model or "",
        prompt_token_ids=tuple(ids),
        sampling=body.sampling(default_max_tokens=body.max_completion_tokens),
        speculation=body.speculation_options(),
    )
    return (await intake.prepare(request),)
