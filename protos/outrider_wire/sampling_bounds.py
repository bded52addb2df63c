"""Bounds of sampling parameters: the part of the shared validator that looks at them."""

from __future__ import annotations

from outrider_runtime.errors import Words
from outrider_wire.form_bounds import check_form
from outrider_wire.requirements import check_count, check_ids, check_texts, require
from outrider_wire.sampling import (
    MAX_BAD_WORD_CHARACTERS,
    MAX_BAD_WORD_IDS,
    MAX_BAD_WORD_RUNS,
    MAX_BAD_WORDS,
    MAX_BIAS,
    MAX_BIASED_IDS,
    MAX_CHOICES,
    MAX_LOGPROBS,
    MAX_PENALTY,
    MAX_STOP_STRING_CHARACTERS,
    MAX_STOP_STRINGS,
    MAX_STOP_TOKEN_IDS,
    MAX_TEMPERATURE,
    SamplingParams,
)

_MAX_SEED = (1 << 64) - 1


def check_sampling(params: SamplingParams, vocab_size: int) -> None:
    """Check every field but those that depend on the prompt's length.

    Raises:
        InvalidRequest: a field is outside its bounds; field, value and bounds are named.
    """
    temperature, top_p, min_p = params.temperature, params.top_p, params.min_p
    require(0 <= temperature <= MAX_TEMPERATURE, "temperature", temperature, f"0 to {MAX_TEMPERATURE}")
    require(0 < top_p <= 1, "top_p", top_p, "above 0, up to 1")
    require(0 <= min_p <= 1, "min_p", min_p, "0 to 1")
    require(0 <= params.top_k <= vocab_size, "top_k", params.top_k, f"0 (keep all) to {vocab_size}")
    require(params.seed is None or 0 <= params.seed <= _MAX_SEED, "seed", params.seed, "0 to 2^64 - 1")
    require(1 <= params.n <= MAX_CHOICES, "n", params.n, f"1 to {MAX_CHOICES}")
    require(params.max_tokens is None or params.max_tokens >= 1, "max_tokens", params.max_tokens, "1 or more")
    wanted, most = params.logprobs, params.max_tokens
    require(wanted is None or 0 <= wanted <= MAX_LOGPROBS, "logprobs", wanted, f"0 to {MAX_LOGPROBS}")
    wanted = params.prompt_logprobs
    require(wanted is None or 0 <= wanted <= MAX_LOGPROBS, "prompt_logprobs", wanted, f"0 to {MAX_LOGPROBS}")
    require(
        params.min_tokens >= 0 and (most is None or params.min_tokens <= most),
        "min_tokens",
        params.min_tokens,
        "0 or more" if most is None else f"0 to max_tokens, which is {most}",
    )
    _check_stops(params, vocab_size)
    _check_penalties(params)
    _check_bias(params, vocab_size)
    _check_masks(params, vocab_size)
    check_form(params)


def _check_stops(params: SamplingParams, vocab_size: int) -> None:
    check_count("stop_token_ids", len(params.stop_token_ids), MAX_STOP_TOKEN_IDS, "ids")
    check_ids("stop_token_ids", params.stop_token_ids, vocab_size)
    check_texts("stop", params.stop, MAX_STOP_STRINGS, MAX_STOP_STRING_CHARACTERS)


def _check_penalties(params: SamplingParams) -> None:
    rule = f"-{MAX_PENALTY} to {MAX_PENALTY}"
    for field, value in (
        ("presence_penalty", params.presence_penalty),
        ("frequency_penalty", params.frequency_penalty),
    ):
        require(-MAX_PENALTY <= value <= MAX_PENALTY, field, value, rule)
    repetition = params.repetition_penalty
    require(0 < repetition <= MAX_PENALTY, "repetition_penalty", repetition, f"above 0, up to {MAX_PENALTY}")


def _check_bias(params: SamplingParams, vocab_size: int) -> None:
    check_count("logit_bias", len(params.logit_bias), MAX_BIASED_IDS, "ids")
    for token, bias in params.logit_bias.items():
        field = f"logit_bias.{token}"
        require(0 <= token < vocab_size, field, token, f"token ids from 0 to {vocab_size - 1}")
        require(-MAX_BIAS <= bias <= MAX_BIAS, field, bias, f"-{MAX_BIAS} to {MAX_BIAS}")


def _check_masks(params: SamplingParams, vocab_size: int) -> None:
    check_count("allowed_token_ids", len(params.allowed_token_ids), vocab_size, "ids")
    check_ids("allowed_token_ids", params.allowed_token_ids, vocab_size)
    check_texts("bad_words", params.bad_words, MAX_BAD_WORDS, MAX_BAD_WORD_CHARACTERS)
    check_count("bad_word_ids", len(params.bad_word_ids), MAX_BAD_WORD_RUNS, "runs of ids")
    for at, run in enumerate(params.bad_word_ids):
        field = f"bad_word_ids[{at}]"
        require(1 <= len(run) <= MAX_BAD_WORD_IDS, field, Words(f"{len(run)} ids"), f"1 to {MAX_BAD_WORD_IDS} ids")
        check_ids(field, run, vocab_size)
