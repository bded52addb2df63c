"""From a client's request to one that targets accept: tokenised, checked by the shared validator, seeded."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from outrider_cluster.gateway.bad_words import bad_word_ids
from outrider_cluster.gateway.registry_view import RegistryView
from outrider_cluster.gateway.served_model import ServedModel
from outrider_runtime.errors import InvalidRequest, Words
from outrider_wire.generation import GenerationRequest
from outrider_wire.sampling import MAX_DEPTH
from outrider_wire.seeds import choose_seed
from outrider_wire.validation import RequestLimits, validate_request

INLINE_CHARACTERS = 2048
"""Longer texts are tokenised on a thread, which leaves Python's lock alone meanwhile: one long prompt does not hold up
everybody's streams."""

_MESSAGE_CHARACTERS = 16
"""What a template adds to each message, about: many empty ones are long, too."""


class Intake:
    """Prepares requests of both front ends, HTTP and gRPC.

    Args:
        model: the served model.
        view: knows the limits of the targets.
        randbits: random bits for seeds, as ``random.SystemRandom().getrandbits``.
        target_wait_s: how long a request waits for the first target that ever gets ready.
    """

    def __init__(
        self, model: ServedModel, view: RegistryView, randbits: Callable[[int], int], target_wait_s: float
    ) -> None:
        self.model = model
        self._view = view
        self._target_wait_s = target_wait_s
        self._randbits = randbits

    def choose_seed(self) -> int:
        """A seed for a request without one, below 2**53."""
        return choose_seed(self._randbits)

    async def limits(self) -> RequestLimits:
        """Bounds of requests now.

        Raises:
            NotReady: no target has ever been ready, even after `target_wait_s`.
        """
        facts = await self._view.facts_within(self._target_wait_s)
        return RequestLimits(
            models=(self.model.name,),
            vocab_size=facts.vocab_size,
            max_model_len=facts.max_model_len,
            pools=self.model.pools,
            latency_classes=self.model.latency_classes,
            max_depth=MAX_DEPTH,
        )

    async def prepare(self, request: GenerationRequest) -> GenerationRequest:
        """The request with ids instead of text, in normal form, with a seed.

        Raises:
            InvalidRequest: a field is outside its bounds.
            UnknownModel: it names another model.
            NotReady: no target has ever been ready.
        """
        limits = await self.limits()
        if request.prompt_text is not None or request.sampling.bad_words:
            validate_request(request, limits)  # refuses what is wrong before any work is spent on it
            request = await self._as_ids(request)
        request = validate_request(request, limits)
        seed = self.choose_seed() if request.sampling.seed is None else request.sampling.seed
        return replace(request, sampling=replace(request.sampling, seed=seed))

    async def _as_ids(self, request: GenerationRequest) -> GenerationRequest:
        if request.prompt_text is not None:
            ids = await self._prompt_ids(request.prompt_text, add_special_tokens=True)
            request = replace(request, prompt_text=None, prompt_token_ids=tuple(ids))
        sampling = request.sampling
        if sampling.bad_words:
            runs = await asyncio.to_thread(bad_word_ids, sampling.bad_words, self._encode_bare)
            sampling = replace(sampling, bad_words=(), bad_word_ids=(*sampling.bad_word_ids, *runs))
        return replace(request, sampling=sampling)

    def _encode_bare(self, text: str) -> list[int]:
        return self.model.tokenizer.encode(text, add_special_tokens=False)

    async def _prompt_ids(self, text: str, add_special_tokens: bool) -> list[int]:
        least, most = self.model.tokenizer.least_tokens(text), (await self.limits()).max_model_len
        if least >= most:  # before it is tokenised, which takes as long as the text is
            rule = f"fewer than {most} tokens (max_model_len)"
            raise InvalidRequest("prompt", Words(f"at least {least} tokens"), rule)
        encode = self.model.tokenizer.encode
        if len(text) <= INLINE_CHARACTERS:
            return encode(text, add_special_tokens=add_special_tokens)
        return await asyncio.to_thread(encode, text, add_special_tokens=add_special_tokens)

    async def apply_template(self, messages: Sequence[Mapping[str, object]]) -> list[int]:
        """Prompt ids of a conversation; the template brings its own special tokens.

        Raises:
            InvalidRequest: no messages, the template does not accept them, or they are longer than the model takes.
            NotReady: no target has ever been ready.
        """
        if not messages:
            raise InvalidRequest("messages", messages, "at least one message")
        length = sum(len(str(message["content"])) + _MESSAGE_CHARACTERS for message in messages)
        if length <= INLINE_CHARACTERS:
            return await self._prompt_ids(self.model.chat_template.render(messages), add_special_tokens=False)
        text = await asyncio.to_thread(self.model.chat_template.render, messages)
        return await self._prompt_ids(text, add_special_tokens=False)
