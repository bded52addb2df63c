"""Request bodies of OpenAI's completions APIs, with vLLM's extra sampling fields and our `speculation`.

Knows names, types and defaults. Bounds of values are the shared validator's business (`outrider_wire.validation`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Annotated, ClassVar, Self

from pydantic import BeforeValidator, Field, model_validator

from outrider_cluster.gateway.answer_form import (
    AnswerForm,
    ResponseFormat,
    Schema,
    StructuredOutputs,
    only_form,
    vllm_forms,
)
from outrider_cluster.gateway.body_model import Body, FoundField, NeutralOnly, at_most, cut_key, neutral
from outrider_cluster.gateway.message_body import MessageBody
from outrider_runtime.errors import InvalidRequest
from outrider_wire.sampling import (
    MAX_BAD_WORDS,
    MAX_BIASED_IDS,
    MAX_CHOICE_TEXTS,
    MAX_STOP_STRINGS,
    MAX_STOP_TOKEN_IDS,
    SamplingParams,
    SpeculationOptions,
)

DEFAULT_TEMPERATURE = 1.0
DEFAULT_COMPLETION_TOKENS = 16
"""What /v1/completions generates when `max_tokens` is absent, as OpenAI's and vLLM's do."""

MAX_MESSAGES = 4096
"""Messages of one conversation: each takes time that everybody else waits for."""


def _listed(value: object) -> object:
    if not isinstance(value, str | list | None):
        raise ValueError("text or a list of texts")
    return [value] if isinstance(value, str) else value


def _bias_by_id(raw: Mapping[str, float]) -> dict[int, float]:
    """Bias by id; JSON has texts only for keys."""
    by_id: dict[int, float] = {}
    for key, bias in raw.items():
        is_id = key.isascii() and key.isdecimal() and len(key) < 12
        if not is_id or int(key) in by_id:
            raise InvalidRequest(f"logit_bias.{cut_key(key)}", key, "token ids in decimal, each once")
        by_id[int(key)] = bias
    return by_id


_IGNORED = frozenset(
    {
        "metadata",
        "store",
        "safety_identifier",
        "prompt_cache_retention",
        "prompt_cache_options",
        "parallel_tool_calls",
    }
)
_NOT_SERVED: Mapping[str, NeutralOnly] = {
    "length_penalty": neutral(1),
    "best_of": neutral(1),
    "service_tier": neutral("auto", "default"),
    "priority": neutral(0),
    "use_beam_search": neutral(False),
    "skip_special_tokens": neutral(True),
    "spaces_between_special_tokens": neutral(True),
    "truncate_prompt_tokens": neutral(),
    "return_token_ids": neutral(False),
    "add_special_tokens": neutral(),
    "guided_grammar": neutral(),
    "cache_salt": neutral(),
    "request_id": neutral(),
    "prediction": neutral(),
    "guided_whitespace_pattern": neutral(),
    "guided_decoding_backend": neutral("auto", "guidance"),
}


class StreamOptions(Body):
    """OpenAI's `stream_options`."""

    ignored: ClassVar[frozenset[str]] = frozenset({"include_obfuscation"})
    neutral_only: ClassVar[Mapping[str, NeutralOnly]] = {"continuous_usage_stats": neutral(False)}

    include_usage: bool | None = None


class SpeculationBody(Body):
    """How one request steers its own speculation; changes the speed, never the tokens."""

    max_depth: int | None = None
    pool: str | None = None
    latency_class: str | None = None

    def options(self) -> SpeculationOptions:
        """In domain words."""
        return SpeculationOptions(max_depth=self.max_depth, pool=self.pool, latency_class=self.latency_class)


class SamplingBody(Body):
    """Fields that completions and chat share. Null means absent, as in OpenAI's API."""

    ignored: ClassVar[frozenset[str]] = _IGNORED
    neutral_only: ClassVar[Mapping[str, NeutralOnly]] = _NOT_SERVED

    model: str | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    n: int | None = None
    seed: int | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    stop: Annotated[
        Annotated[list[str], Field(max_length=MAX_STOP_STRINGS, fail_fast=True)] | None, BeforeValidator(_listed)
    ] = None
    stop_token_ids: Annotated[list[int], Field(max_length=MAX_STOP_TOKEN_IDS, fail_fast=True)] | None = None
    ignore_eos: bool | None = None
    include_stop_str_in_output: bool | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    repetition_penalty: float | None = None
    logit_bias: Annotated[dict[str, float], at_most(MAX_BIASED_IDS)] | None = None
    allowed_token_ids: Annotated[list[int], Field(fail_fast=True)] | None = None
    bad_words: Annotated[list[str], Field(max_length=MAX_BAD_WORDS, fail_fast=True)] | None = None
    min_tokens: int | None = None
    prompt_logprobs: int | None = None
    response_format: ResponseFormat | None = None
    structured_outputs: StructuredOutputs | None = None
    guided_json: Schema | None = None
    guided_regex: str | None = None
    guided_choice: Annotated[list[str], Field(max_length=MAX_CHOICE_TEXTS, fail_fast=True)] | None = None
    user: str | None = None
    prompt_cache_key: str | None = None
    speculation: SpeculationBody | None = None

    @property
    @abstractmethod
    def wanted_logprobs(self) -> int | None:
        """Log-probabilities wanted besides each chosen token's; None for none at all."""

    @property
    def session(self) -> str | None:
        """Names requests that probably share a prefix. A hint for routing, nothing more."""
        return self.prompt_cache_key or self.user

    @property
    def include_usage(self) -> bool:
        """Whether a stream ends with a chunk that holds the usage."""
        return bool(self.stream_options and self.stream_options.include_usage)

    def form(self) -> AnswerForm | None:
        """The form that the answer must have, if the request prescribes one.

        Raises:
            InvalidRequest: it prescribes several, or one without sense.
        """
        parts = [part.forms() for part in (self.response_format, self.structured_outputs) if part is not None]
        older = vllm_forms("guided_", self.guided_json, None, self.guided_regex, self.guided_choice)
        return only_form([form for forms in (*parts, older) for form in forms])

    def sampling(self, default_max_tokens: int | None) -> SamplingParams:
        """In domain words, with OpenAI's defaults. Values are not yet checked against their bounds.

        Raises:
            InvalidRequest: a key of `logit_bias` is no id, `allowed_token_ids` allows none, or as `form`.
        """
        form = self.form()
        if self.allowed_token_ids == []:
            raise InvalidRequest("allowed_token_ids", [], "at least 1 id, or null to allow all")
        return SamplingParams(
            temperature=DEFAULT_TEMPERATURE if self.temperature is None else self.temperature,
            top_k=0 if self.top_k in (None, -1) else self.top_k or 0,
            top_p=1.0 if self.top_p is None else self.top_p,
            min_p=self.min_p or 0.0,
            seed=self.seed,
            max_tokens=default_max_tokens if self.max_tokens is None else self.max_tokens,
            ignore_eos=bool(self.ignore_eos),
            stop_token_ids=tuple(self.stop_token_ids or ()),
            stop=tuple(self.stop or ()),
            n=1 if self.n is None else self.n,
            include_stop_str_in_output=bool(self.include_stop_str_in_output),
            presence_penalty=self.presence_penalty or 0.0,
            frequency_penalty=self.frequency_penalty or 0.0,
            repetition_penalty=1.0 if self.repetition_penalty is None else self.repetition_penalty,
            logit_bias=_bias_by_id(self.logit_bias or {}),
            allowed_token_ids=tuple(self.allowed_token_ids or ()),
            bad_words=tuple(self.bad_words or ()),
            min_tokens=self.min_tokens or 0,
            logprobs=self.wanted_logprobs,
            json_schema=None if form is None else form.json_schema,
            regex=None if form is None else form.regex,
            choices=() if form is None else form.choices,
            prompt_logprobs=self.prompt_logprobs,
        )

    def speculation_options(self) -> SpeculationOptions:
        """What the request asks of speculation."""
        return (self.speculation or SpeculationBody()).options()


class CompletionBody(SamplingBody):
    """Body of POST /v1/completions. `prompt` is judged by `outrider_cluster.gateway.completions`."""

    neutral_only: ClassVar[Mapping[str, NeutralOnly]] = {
        **_NOT_SERVED,
        "echo": neutral(False),
        "suffix": neutral(""),
    }
    elsewhere: ClassVar[Mapping[str, str]] = {"messages": "/v1/chat/completions"}

    prompt: object
    logprobs: int | None = None

    @property
    def wanted_logprobs(self) -> int | None:
        """`logprobs` itself."""
        return self.logprobs


class ChatBody(SamplingBody):
    """Body of POST /v1/chat/completions."""

    neutral_only: ClassVar[Mapping[str, NeutralOnly]] = {
        **_NOT_SERVED,
        "tools": neutral([]),
        "tool_choice": neutral("none", "auto"),
        "functions": neutral([]),
        "function_call": neutral("none", "auto"),
        "modalities": neutral(["text"]),
        "audio": neutral(),
        "reasoning_effort": neutral("none"),
        "verbosity": neutral(),
        "web_search_options": neutral(),
        "moderation": neutral(),
        "echo": neutral(False),
        "add_generation_prompt": neutral(True),
        "continue_final_message": neutral(False),
        "chat_template": neutral(),
        "chat_template_kwargs": neutral({}),
        "documents": neutral([]),
    }
    elsewhere: ClassVar[Mapping[str, str]] = {"prompt": '/v1/completions, and this API needs "messages"'}

    messages: Annotated[list[MessageBody], Field(max_length=MAX_MESSAGES, fail_fast=True)]
    max_completion_tokens: int | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None

    @property
    def wanted_logprobs(self) -> int | None:
        """`top_logprobs`, if `logprobs` is on."""
        return (self.top_logprobs or 0) if self.logprobs else None

    @model_validator(mode="after")
    def _logprobs_first(self) -> Self:
        if self.top_logprobs and not self.logprobs:
            raise FoundField("top_logprobs", self.top_logprobs, "only together with logprobs: true", InvalidRequest)
        return self

    @model_validator(mode="after")
    def _one_limit(self) -> Self:
        if None not in (self.max_tokens, self.max_completion_tokens) and self.max_tokens != self.max_completion_tokens:
            rule = f"the same as max_tokens, which is {self.max_tokens}, or only one of the two"
            raise FoundField("max_completion_tokens", self.max_completion_tokens, rule, InvalidRequest)
        return self
