"""OpenAI's response objects, built from deltas. Pure: completions and chat differ in a `Dialect` only."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Protocol

from outrider_cluster.gateway.speculative_metrics import outrider_extras, request_metrics
from outrider_cluster.gateway.spelled_logprobs import SpelledPosition, Speller, spelled_prompt
from outrider_runtime.errors import EngineFailed
from outrider_wire.generation import Finished, GenerationDelta, RejectionSampleMethod, TokenLogprobs

Json = dict[str, object]
Positions = Sequence[SpelledPosition]


class Dialect(Protocol):
    """How one of OpenAI's APIs spells an answer."""

    @property
    def object_name(self) -> str:
        """Value of `object` in a whole response."""

    @property
    def chunk_name(self) -> str:
        """Value of `object` in a streamed chunk."""

    @property
    def prompts_per_choice(self) -> bool:
        """Whether log-probabilities of the prompt stand in every choice, or once beside them."""

    def choice(self, index: int, text: str, finish_reason: str, logprobs: Positions | None) -> Json:
        """A whole choice; `logprobs` None where the request asks for none."""

    def opening(self, index: int) -> Json | None:
        """The first chunk of a choice, before any text; None where the API has none."""

    def piece(self, index: int, text: str, finish_reason: str | None, logprobs: Positions | None) -> Json:
        """A further piece of a choice."""


@dataclass(frozen=True, slots=True)
class AnswerHead:
    """What all objects of one answer share."""

    id: str
    created: int
    model: str
    system_fingerprint: str
    seeds: tuple[int, ...]
    """Of each prompt."""
    exact: bool
    choices: int
    choices_per_prompt: int
    is_synthetic: bool = False
    """Whether acceptance is pretended: then every object says so."""
    speller: Speller | None = None
    """Spells log-probabilities where they were asked for."""
    prompt_speller: Callable[[int], bytes] | None = None
    """What an id spells, where log-probabilities of the prompt were asked for."""

    def seed_of(self, index: int) -> int:
        """With which the prompt of a choice, alone, gets its choices again."""
        return self.seeds[index // self.choices_per_prompt]

    @property
    def common_seed(self) -> Json:
        """The seed with which the request gets its answer again; nothing where prompts have seeds of their own."""
        return {"seed": self.seeds[0]} if len(set(self.seeds)) == 1 else {}

    def own_seed(self, index: int) -> Json:
        """The seed of a choice where it is not that of all."""
        return {} if self.common_seed else {"seed": self.seed_of(index)}

    def spell(self, delta: GenerationDelta) -> Positions | None:
        """Log-probabilities of the next piece of a choice; None where none were asked for."""
        return None if self.speller is None else self.speller.spell(delta)

    def prompt(self, logprobs: Sequence[TokenLogprobs]) -> Json:
        """Log-probabilities of the prompt of a choice, where they were asked for."""
        spell = self.prompt_speller
        return {} if spell is None else {"prompt_logprobs": spelled_prompt(logprobs, spell)}

    def envelope(self, object_name: str) -> Json:
        """The common beginning of a response or chunk."""
        common: Json = {
            "id": self.id,
            "object": object_name,
            "created": self.created,
            "model": self.model,
            "system_fingerprint": self.system_fingerprint,
        }
        marked = {"outrider": {"rejection_sample_method": RejectionSampleMethod.SYNTHETIC.value}}
        return {**common, **marked} if self.is_synthetic else common

    def statistics(self, finished: Sequence[Finished]) -> Json:
        """Our object for all choices, and beside it the `metrics` of vLLM: for a single choice only, as there."""
        if len(finished) != self.choices:
            return {}
        exact = self.exact and not any(ended.mixed_logits for ended in finished)
        extras: Json = {"outrider": outrider_extras([ended.speculation for ended in finished], exact)}
        return {"metrics": request_metrics(finished[0]), **extras} if self.choices == 1 else extras


@dataclass(slots=True)
class Tally:
    """How the choices of one answer ended so far, by index."""

    finished: dict[int, Finished] = field(default_factory=dict)

    def saw(self, delta: GenerationDelta) -> None:
        """Note the end of a choice."""
        if delta.finished is not None:
            self.finished[delta.index] = delta.finished

    def all(self) -> Sequence[Finished]:
        """The ends so far, by index."""
        return [self.finished[index] for index in sorted(self.finished)]

    def usage(self, head: AnswerHead) -> Mapping[str, object]:
        """OpenAI's `usage`: each prompt counts once, however many choices it has."""
        firsts = [ended for index, ended in self.finished.items() if index % head.choices_per_prompt == 0]
        prompt = sum(ended.prompt_tokens for ended in firsts)
        completion = sum(ended.completion_tokens for ended in self.finished.values())
        return {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
            "prompt_tokens_details": {"cached_tokens": sum(ended.cached_tokens for ended in firsts)},
        }


async def whole_answer(head: AnswerHead, dialect: Dialect, deltas: AsyncGenerator[GenerationDelta, None]) -> Json:
    """The response of a request that does not stream.

    Raises:
        OutriderError: whatever ends `deltas`.
    """
    texts: dict[int, list[str]] = {index: [] for index in range(head.choices)}
    logprobs: dict[int, list[SpelledPosition]] = {index: [] for index in range(head.choices)}
    prompts: dict[int, list[TokenLogprobs]] = {index: [] for index in range(head.choices)}
    tally = Tally()
    async with aclosing(deltas):
        async for delta in deltas:
            prompts[delta.index].extend(delta.prompt_logprobs)
            texts[delta.index].append(delta.text)
            logprobs[delta.index].extend(head.spell(delta) or ())
            tally.saw(delta)
    if len(tally.finished) != head.choices:
        raise EngineFailed(f"{head.choices - len(tally.finished)} of {head.choices} choices did not finish")
    choices = [
        dialect.choice(
            index,
            "".join(parts),
            tally.finished[index].reason.value,
            None if head.speller is None else logprobs[index],
        )
        | (head.prompt(prompts[index]) if dialect.prompts_per_choice else {})
        | head.own_seed(index)
        for index, parts in texts.items()
    ]
    return {
        **head.envelope(dialect.object_name),
        "choices": choices,
        **({} if dialect.prompts_per_choice else head.prompt(prompts[0])),
        "usage": tally.usage(head),
        **head.common_seed,
        **head.statistics(tally.all()),
    }


async def answer_chunks(
    head: AnswerHead, dialect: Dialect, deltas: AsyncGenerator[GenerationDelta, None], include_usage: bool
) -> AsyncGenerator[Json, None]:
    """The chunks of a request that streams. The seed stands in the last chunk of each choice and beside the usage."""
    tally = Tally()
    opened: set[int] = set()
    async with aclosing(deltas):
        async for delta in deltas:
            tally.saw(delta)
            if delta.index not in opened:
                opened.add(delta.index)
                opening = dialect.opening(delta.index)
                if opening is not None:
                    yield {**head.envelope(dialect.chunk_name), "choices": [opening]}
            if delta.text or delta.logprobs or delta.finished is not None:
                yield _chunk(head, dialect, delta)
    if include_usage:
        yield {
            **head.envelope(dialect.chunk_name),
            "choices": [],
            "usage": tally.usage(head),
            **head.common_seed,
            **head.statistics(tally.all()),
        }


def _chunk(head: AnswerHead, dialect: Dialect, delta: GenerationDelta) -> Json:
    reason = None if delta.finished is None else delta.finished.reason.value
    piece = dialect.piece(delta.index, delta.text, reason, head.spell(delta) or None)
    chunk = {**head.envelope(dialect.chunk_name), "choices": [piece]}
    return chunk if reason is None else {**chunk, "seed": head.seed_of(delta.index)}
