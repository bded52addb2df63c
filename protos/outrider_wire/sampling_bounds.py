"""Bounds of sampling parameters: the part of the shared validator that looks at them."""

from __future__ import annotations

from collections.abc import Sequence

from outrider_runtime.errors import InvalidRequest, Words
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


def require(holds: bool, field: str, value: object, allowed: str) -> None:
    """Refuse a field unless `holds`.

    Raises:
        InvalidRequest: it does not hold.
    """
    if not holds:
        raise InvalidRequest(field, value, allowed)


def check_text(field: str, text: str) -> None:
    """Refuse what is no Unicode text.

    Raises:
        InvalidRequest: `text` holds half of a surrogate pair.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidRequest(field, text[error.start : error.end], "Unicode text without lone surrogates") from error


def check_ids(field: str, ids: Sequence[int], vocab_size: int) -> None:
    """Refuse ids outside the vocabulary.

    Raises:
        InvalidRequest: names the first such id and its place.
    """
    if ids and not (0 <= min(ids) and max(ids) < vocab_size):
        at, token = next((at, token) for at, token in enumerate(ids) if not 0 <= token < vocab_size)
        raise InvalidRequest(f"{field}[{at}]", token, f"token ids from 0 to {vocab_size - 1}")


def _check_stops(params: SamplingParams, vocab_size: int) -> None:
    _check_count("stop_token_ids", len(params.stop_token_ids), MAX_STOP_TOKEN_IDS, "ids")
    check_ids("stop_token_ids", params.stop_token_ids, vocab_size)
    _check_texts("stop", params.stop, MAX_STOP_STRINGS, MAX_STOP_STRING_CHARACTERS)


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
    _check_count("logit_bias", len(params.logit_bias), MAX_BIASED_IDS, "ids")
    for token, bias in params.logit_bias.items():
        field = f"logit_bias.{token}"
        require(0 <= token < vocab_size, field, token, f"token ids from 0 to {vocab_size - 1}")
        require(-MAX_BIAS <= bias <= MAX_BIAS, field, bias, f"-{MAX_BIAS} to {MAX_BIAS}")


def _check_masks(params: SamplingParams, vocab_size: int) -> None:
    _check_count("allowed_token_ids", len(params.allowed_token_ids), vocab_size, "ids")
    check_ids("allowed_token_ids", params.allowed_token_ids, vocab_size)
    _check_texts("bad_words", params.bad_words, MAX_BAD_WORDS, MAX_BAD_WORD_CHARACTERS)
    _check_count("bad_word_ids", len(params.bad_word_ids), MAX_BAD_WORD_RUNS, "runs of ids")
    for at, run in enumerate(params.bad_word_ids):
        field = f"bad_word_ids[{at}]"
        require(1 <= len(run) <= MAX_BAD_WORD_IDS, field, Words(f"{len(run)} ids"), f"1 to {MAX_BAD_WORD_IDS} ids")
        check_ids(field, run, vocab_size)


def _check_count(field: str, count: int, most: int, what: str) -> None:
    require(count <= most, field, Words(f"{count} {what}"), f"at most {most} {what}")


def _check_texts(field: str, texts: Sequence[str], most: int, longest: int) -> None:
    _check_count(field, len(texts), most, "strings")
    for at, text in enumerate(texts):
        check_text(f"{field}[{at}]", text)
        require(1 <= len(text) <= longest, f"{field}[{at}]", text, f"1 to {longest} characters")
