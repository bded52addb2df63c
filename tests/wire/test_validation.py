"""The validator as a table: every field, the last value that passes, the first that does not, and what is said."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from outrider_doubles import wire_values

from outrider_runtime.errors import InvalidRequest, UnknownModel
from outrider_wire.generation import GenerationRequest
from outrider_wire.sampling import SamplingParams, SpeculationOptions
from outrider_wire.validation import RequestLimits, validate_request

LIMITS = RequestLimits(
    models=("small", "alias"),
    vocab_size=1000,
    max_model_len=16,
    pools=("ngram", "suffix"),
    latency_classes=("interactive", "batch"),
)
PROMPT = GenerationRequest(prompt_token_ids=(1, 2, 3, 4))
NAN, INFINITY = float("nan"), float("inf")


def sampled(**fields: object) -> GenerationRequest:
    """A request with sampling parameters."""
    return replace(PROMPT, sampling=SamplingParams(**fields))  # type: ignore[arg-type]


def speculating(**fields: object) -> GenerationRequest:
    """A request with speculation options."""
    return replace(PROMPT, speculation=SpeculationOptions(**fields))  # type: ignore[arg-type]


def text(prompt: str) -> GenerationRequest:
    """A request with a prompt of text."""
    return GenerationRequest(prompt_text=prompt)


ACCEPTED = {
    "ids": PROMPT,
    "text": text("a"),
    "text with a zero character": text("a\0b"),
    "text right to left with joiners": text("\u202eab\u200d\U0001f469"),
    "named model": replace(PROMPT, model="alias"),
    "longest names": replace(PROMPT, request_id="aZ09._-" + "x" * 57, tenant="x" * 64),
    "first and last id": replace(PROMPT, prompt_token_ids=(0, 999)),
    "longest prompt": replace(PROMPT, prompt_token_ids=(1,) * 15),
    "all of the room": sampled(max_tokens=12),
    "greedy": sampled(temperature=0.0),
    "negative zero": sampled(temperature=-0.0),
    "hottest": sampled(temperature=2.0),
    "smallest positive temperature": sampled(temperature=5e-324),
    "largest top_k": sampled(top_k=1000),
    "smallest top_p": sampled(top_p=5e-324),
    "min_p at its ends": sampled(min_p=1.0),
    "smallest seed": sampled(seed=0),
    "largest seed": sampled(seed=2**64 - 1),
    "most choices": sampled(n=16),
    "most stop ids": sampled(stop_token_ids=(999,) * 64),
    "most and longest stop strings": sampled(stop=("x" * 256,) * 16),
    "a stop string of a zero character": sampled(stop=("\0",)),
    "lowest penalties": sampled(presence_penalty=-2.0, frequency_penalty=-2.0, repetition_penalty=5e-324),
    "highest penalties": sampled(presence_penalty=2.0, frequency_penalty=2.0, repetition_penalty=2.0),
    "most biased ids": sampled(logit_bias=dict.fromkeys(range(300), -100.0) | {299: 100.0}),
    "every id allowed": sampled(allowed_token_ids=tuple(range(1000))),
    "most and longest bad words": sampled(bad_words=("x" * 256,) * 128),
    "most and longest bad runs": sampled(bad_word_ids=((0,) * 1024,) * 256),
    "no logprobs but the chosen one's": sampled(logprobs=0),
    "most logprobs": sampled(logprobs=20),
    "most prompt logprobs": sampled(prompt_logprobs=20),
    "longest regex": sampled(regex="a" * 8192),
    "most choices of text": sampled(choices=("x" * 64,) * 1024),
    "deepest schema": sampled(json_schema='{"enum":' + "[" * 63 + "]" * 63 + "}"),
    "any document": sampled(json_schema="true"),
    "min_tokens up to the limit": sampled(max_tokens=5, min_tokens=5),
    "min_tokens up to the room": sampled(min_tokens=12),
    "speculation off": speculating(max_depth=0),
    "deepest": speculating(max_depth=64),
    "pool": speculating(pool="suffix"),
    "latency class": speculating(latency_class="batch"),
    "moved": replace(sampled(max_tokens=3), committed_token_ids=(7, 8)),
    "moved with all but one of the room used": replace(PROMPT, committed_token_ids=(7,) * 11),
}

REFUSED = {
    "no prompt": (GenerationRequest(), "prompt", "'nothing", "exactly one of text and token_ids"),
    "two prompts": (replace(PROMPT, prompt_text="a"), "prompt", "'both", "exactly one"),
    "empty text": (text(""), "prompt", "''", "at least 1 character"),
    "no ids": (replace(PROMPT, prompt_token_ids=()), "prompt", "()", "at least 1 token"),
    "lone surrogate in prompt": (text("a\ud800b"), "prompt", r"'\ud800'", "without lone surrogates"),
    "id beyond the vocabulary": (replace(PROMPT, prompt_token_ids=(1, 1000)), "prompt[1]", "1000", "from 0 to 999"),
    "negative id": (replace(PROMPT, prompt_token_ids=(-1,)), "prompt[0]", "-1", "from 0 to 999"),
    "prompt fills the model": (
        replace(PROMPT, prompt_token_ids=(1,) * 16),
        "prompt",
        "'16 tokens'",
        "fewer than 16 tokens",
    ),
    "prompt beyond the model": (
        replace(PROMPT, prompt_token_ids=(1,) * 160),
        "prompt",
        "'160 tokens'",
        "fewer than 16 tokens",
    ),
    "no tokens": (sampled(max_tokens=0), "max_tokens", "0", "1 or more"),
    "negative tokens": (sampled(max_tokens=-5), "max_tokens", "-5", "1 or more"),
    "more tokens than room": (
        sampled(max_tokens=13),
        "max_tokens",
        "13",
        "at most 12: the prompt has 4 tokens and max_model_len is 16",
    ),
    "temperature NaN": (sampled(temperature=NAN), "temperature", "nan", "0 to 2.0"),
    "temperature infinite": (sampled(temperature=INFINITY), "temperature", "inf", "0 to 2.0"),
    "temperature negative": (sampled(temperature=-0.1), "temperature", "-0.1", "0 to 2.0"),
    "temperature too high": (sampled(temperature=2.0000001), "temperature", "2.0000001", "0 to 2.0"),
    "top_p zero": (sampled(top_p=0.0), "top_p", "0.0", "above 0, up to 1"),
    "top_p above 1": (sampled(top_p=1.01), "top_p", "1.01", "above 0, up to 1"),
    "top_p NaN": (sampled(top_p=NAN), "top_p", "nan", "above 0, up to 1"),
    "top_k negative": (sampled(top_k=-1), "top_k", "-1", "0 (keep all) to 1000"),
    "top_k too large": (sampled(top_k=1001), "top_k", "1001", "0 (keep all) to 1000"),
    "min_p negative": (sampled(min_p=-0.5), "min_p", "-0.5", "0 to 1"),
    "min_p above 1": (sampled(min_p=1.5), "min_p", "1.5", "0 to 1"),
    "min_p NaN": (sampled(min_p=NAN), "min_p", "nan", "0 to 1"),
    "prompt logprobs negative": (sampled(prompt_logprobs=-1), "prompt_logprobs", "-1", "0 to 20"),
    "too many prompt logprobs": (sampled(prompt_logprobs=21), "prompt_logprobs", "21", "0 to 20"),
    "empty regex": (sampled(regex=""), "regex", "'0 characters'", "1 to 8192"),
    "regex too long": (sampled(regex="a" * 8193), "regex", "'8193 characters'", "1 to 8192"),
    "too many choices of text": (sampled(choices=("a",) * 1025), "choices", "'1025 strings'", "at most 1024"),
    "choices too long together": (
        sampled(choices=("x" * 65,) * 1024),
        "choices",
        "'66560 characters'",
        "at most 65536",
    ),
    "schema that is no JSON": (sampled(json_schema="{"), "json_schema", "'{'", "a JSON Schema, as JSON"),
    "schema that is a number": (sampled(json_schema="7"), "json_schema", "'7'", "an object, true or false"),
    "schema too nested": (
        sampled(json_schema='{"enum":' + "[" * 64 + "]" * 64 + "}"),
        "json_schema",
        "'65 levels'",
        "at most 64 levels",
    ),
    "schema too large": (sampled(json_schema="x" * 65537), "json_schema", "'65537 bytes'", "at most 65536"),
    "two forms": (sampled(regex="a", choices=("a",)), "choices", "'regex and choices'", "one form"),
    "a form that may not end": (sampled(regex="a", ignore_eos=True), "ignore_eos", "True", "together with regex"),
    "seed negative": (sampled(seed=-1), "seed", "-1", "0 to 2^64 - 1"),
    "seed too large": (sampled(seed=2**64), "seed", str(2**64), "0 to 2^64 - 1"),
    "no choices": (sampled(n=0), "n", "0", "1 to 16"),
    "too many choices": (sampled(n=17), "n", "17", "1 to 16"),
    "too many stop ids": (sampled(stop_token_ids=(1,) * 65), "stop_token_ids", "'65 ids'", "at most 64 ids"),
    "stop id beyond": (sampled(stop_token_ids=(5, 1000)), "stop_token_ids[1]", "1000", "from 0 to 999"),
    "stop id negative": (sampled(stop_token_ids=(-1,)), "stop_token_ids[0]", "-1", "from 0 to 999"),
    "too many stop strings": (sampled(stop=("a",) * 17), "stop", "'17 strings'", "at most 16 strings"),
    "empty stop string": (sampled(stop=("a", "")), "stop[1]", "''", "1 to 256 characters"),
    "long stop string": (sampled(stop=("a" * 257,)), "stop[0]", "'aaaa", "1 to 256 characters"),
    "lone surrogate in stop": (sampled(stop=("\udfff",)), "stop[0]", r"'\udfff'", "without lone surrogates"),
    "presence too low": (sampled(presence_penalty=-2.1), "presence_penalty", "-2.1", "-2.0 to 2.0"),
    "presence NaN": (sampled(presence_penalty=NAN), "presence_penalty", "nan", "-2.0 to 2.0"),
    "frequency too high": (sampled(frequency_penalty=2.1), "frequency_penalty", "2.1", "-2.0 to 2.0"),
    "repetition zero": (sampled(repetition_penalty=0.0), "repetition_penalty", "0.0", "above 0, up to 2.0"),
    "repetition too high": (sampled(repetition_penalty=2.1), "repetition_penalty", "2.1", "above 0, up to 2.0"),
    "too many biased ids": (
        sampled(logit_bias=dict.fromkeys(range(301), 0.0)),
        "logit_bias",
        "'301 ids'",
        "at most 300 ids",
    ),
    "biased id beyond": (sampled(logit_bias={1000: 1.0}), "logit_bias.1000", "1000", "from 0 to 999"),
    "biased id negative": (sampled(logit_bias={-1: 1.0}), "logit_bias.-1", "-1", "from 0 to 999"),
    "bias too low": (sampled(logit_bias={5: -101.0}), "logit_bias.5", "-101.0", "-100.0 to 100.0"),
    "bias NaN": (sampled(logit_bias={5: NAN}), "logit_bias.5", "nan", "-100.0 to 100.0"),
    "allowed id beyond": (sampled(allowed_token_ids=(0, 1000)), "allowed_token_ids[1]", "1000", "from 0 to 999"),
    "more allowed ids than there are": (
        sampled(allowed_token_ids=(0,) * 1001),
        "allowed_token_ids",
        "'1001 ids'",
        "at most 1000 ids",
    ),
    "too many bad words": (sampled(bad_words=("a",) * 129), "bad_words", "'129 strings'", "at most 128 strings"),
    "empty bad word": (sampled(bad_words=("a", "")), "bad_words[1]", "''", "1 to 256 characters"),
    "lone surrogate in a bad word": (sampled(bad_words=("\udfff",)), "bad_words[0]", r"'\udfff'", "surrogates"),
    "too many bad runs": (sampled(bad_word_ids=((1,),) * 257), "bad_word_ids", "'257 runs", "at most 256 runs"),
    "empty bad run": (sampled(bad_word_ids=((1,), ())), "bad_word_ids[1]", "'0 ids'", "1 to 1024 ids"),
    "bad run beyond": (sampled(bad_word_ids=((1, 1000),)), "bad_word_ids[0][1]", "1000", "from 0 to 999"),
    "too many logprobs": (sampled(logprobs=21), "logprobs", "21", "0 to 20"),
    "negative logprobs": (sampled(logprobs=-1), "logprobs", "-1", "0 to 20"),
    "negative min_tokens": (sampled(min_tokens=-1), "min_tokens", "-1", "0 or more"),
    "min_tokens above max_tokens": (sampled(max_tokens=3, min_tokens=4), "min_tokens", "4", "0 to max_tokens"),
    "min_tokens above the room": (sampled(min_tokens=13), "min_tokens", "13", "at most 12"),
    "request id with a slash": (replace(PROMPT, request_id="a/b"), "request_id", "'a/b'", "0 to 64 characters"),
    "request id with a newline": (replace(PROMPT, request_id="a\n"), "request_id", r"'a\n'", "0 to 64 characters"),
    "request id too long": (replace(PROMPT, request_id="x" * 65), "request_id", "'xxx", "0 to 64 characters"),
    "request id in other digits": (replace(PROMPT, request_id="\u0663"), "request_id", "'\u0663'", "A-Z a-z 0-9"),
    "tenant with a space": (replace(PROMPT, tenant="a b"), "tenant", "'a b'", "0 to 64 characters"),
    "negative depth": (speculating(max_depth=-1), "speculation.max_depth", "-1", "0 to 64"),
    "too deep": (speculating(max_depth=65), "speculation.max_depth", "65", "0 to 64"),
    "unknown class": (speculating(latency_class="fast"), "speculation.latency_class", "'fast'", "interactive, batch"),
    "empty class": (speculating(latency_class=""), "speculation.latency_class", "''", "interactive, batch"),
    "unknown pool": (speculating(pool="eagle"), "speculation.pool", "'eagle'", "ngram, suffix"),
    "surrogate pool": (speculating(pool="\ud800"), "speculation.pool", r"'\ud800'", "ngram, suffix"),
    "committed id beyond": (
        replace(PROMPT, committed_token_ids=(1000,)),
        "committed_token_ids[0]",
        "1000",
        "from 0 to 999",
    ),
    "committed to the end": (
        replace(PROMPT, committed_token_ids=(1,) * 12),
        "committed_token_ids",
        "'12 ids'",
        "fewer than 12",
    ),
    "committed to the limit": (
        replace(sampled(max_tokens=2), committed_token_ids=(1, 1)),
        "committed_token_ids",
        "'2 ids'",
        "fewer than 2",
    ),
}


@pytest.mark.parametrize("request_", ACCEPTED.values(), ids=ACCEPTED)
def test_a_request_within_its_bounds_passes_unchanged(request_: GenerationRequest) -> None:
    assert validate_request(request_, LIMITS) == request_


@pytest.mark.parametrize(("request_", "field", "value", "allowed"), REFUSED.values(), ids=REFUSED)
def test_a_request_outside_its_bounds_is_refused_by_field_value_and_bounds(
    request_: GenerationRequest, field: str, value: str, allowed: str
) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        validate_request(request_, LIMITS)
    assert refusal.value.field == field
    assert repr(refusal.value.value).startswith(value)
    assert allowed in refusal.value.allowed
    assert str(refusal.value).startswith(f"{field}: got ")


def test_another_model_is_refused_with_the_names_of_those_served() -> None:
    with pytest.raises(UnknownModel, match='model "large" is not served here; served: small, alias'):
        validate_request(replace(PROMPT, model="large"), LIMITS)


def test_the_name_of_another_model_is_cut_and_quoted() -> None:
    with pytest.raises(UnknownModel) as refusal:
        validate_request(replace(PROMPT, model="\ud800\n" * 10_000), LIMITS)
    message = str(refusal.value)
    assert len(message) < 1200 and "\n" not in message and message.encode()


def test_without_latency_classes_none_can_be_named() -> None:
    with pytest.raises(InvalidRequest, match="none: no latency class is configured"):
        validate_request(speculating(latency_class="batch"), replace(LIMITS, latency_classes=()))


def test_without_pools_no_pool_can_be_named() -> None:
    with pytest.raises(InvalidRequest, match="none: no draft pool is configured"):
        validate_request(speculating(pool="ngram"), replace(LIMITS, pools=()))


def test_the_depth_is_bounded_by_what_is_served() -> None:
    shallow = replace(LIMITS, max_depth=3)
    assert validate_request(speculating(max_depth=3), shallow)
    with pytest.raises(InvalidRequest, match=r"speculation\.max_depth: got 4, allowed: 0 to 3"):
        validate_request(speculating(max_depth=4), shallow)


def test_the_length_of_a_text_is_judged_once_its_ids_are_known() -> None:
    long = replace(text("a" * 1000), sampling=SamplingParams(max_tokens=12))
    assert validate_request(long, LIMITS) == long
    with pytest.raises(InvalidRequest, match="prompt"):
        validate_request(replace(long, prompt_text=None, prompt_token_ids=(1,) * 1000), LIMITS)


@given(wire_values.requests)
def test_whatever_comes_off_the_wire_is_accepted_or_refused_by_name(request: GenerationRequest) -> None:
    try:
        assert validate_request(request, LIMITS) == request
    except InvalidRequest as refusal:
        assert refusal.field and refusal.allowed
    except UnknownModel:
        assert request.model not in LIMITS.models
