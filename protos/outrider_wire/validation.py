"""The one validator of generation requests, used by the HTTP and gRPC front ends and again by targets."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from outrider_runtime.errors import InvalidRequest, UnknownModel
from outrider_wire.generation import GenerationRequest
from outrider_wire.sampling import (
    MAX_CHOICES,
    MAX_DEPTH,
    MAX_STOP_STRING_CHARACTERS,
    MAX_STOP_STRINGS,
    MAX_STOP_TOKEN_IDS,
    MAX_TEMPERATURE,
    SamplingParams,
    SpeculationOptions,
)

_NAME = re.compile(r"[A-Za-z0-9._-]{0,64}")
_NAME_RULE = "0 to 64 characters of A-Z a-z 0-9 . _ -"
_MAX_SEED = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """What requests are held to."""

    models: tuple[str, ...]
    vocab_size: int
    max_model_len: int
    """Prompt and output tokens of one request at most."""
    pools: tuple[str, ...] = ()
    max_depth: int = MAX_DEPTH


def validate_request(request: GenerationRequest, limits: RequestLimits) -> GenerationRequest:
    """Check a request and return it unchanged.

    Raises:
        InvalidRequest: a field is outside its bounds; field, value and bounds are named.
        UnknownModel: another model is asked for.
    """
    if request.model and request.model not in limits.models:
        raise UnknownModel(f"model {request.model[:128]!r} is not served here; served: {', '.join(limits.models)}")
    _check_name("request_id", request.request_id)
    _check_name("tenant", request.tenant)
    _check_prompt(request, limits)
    _check_sampling(request.sampling, limits)
    _check_lengths(request, limits)
    _check_speculation(request.speculation, limits)
    return request


def _require(holds: bool, field: str, value: object, allowed: str) -> None:
    if not holds:
        raise InvalidRequest(field, value, allowed)


def _check_name(field: str, value: str) -> None:
    _require(_NAME.fullmatch(value) is not None, field, value, _NAME_RULE)


def _check_prompt(request: GenerationRequest, limits: RequestLimits) -> None:
    text, ids = request.prompt_text, request.prompt_token_ids
    _require((text is None) != (ids is None), "prompt", None, "exactly one of text and token_ids")
    if text is not None:
        _check_text("prompt", text)
        _require(bool(text), "prompt", text, "at least 1 character")
    if ids is not None:
        _require(bool(ids), "prompt", ids, "at least 1 token")
        _check_ids("prompt", ids, limits.vocab_size)
    _check_ids("committed_token_ids", request.committed_token_ids, limits.vocab_size)


def _check_text(field: str, text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidRequest(field, text[error.start : error.end], "Unicode text without lone surrogates") from error


def _check_ids(field: str, ids: Sequence[int], vocab_size: int) -> None:
    if ids and not (0 <= min(ids) and max(ids) < vocab_size):
        at, token = next((at, token) for at, token in enumerate(ids) if not 0 <= token < vocab_size)
        raise InvalidRequest(f"{field}[{at}]", token, f"token ids from 0 to {vocab_size - 1}")


def _check_sampling(params: SamplingParams, limits: RequestLimits) -> None:
    temperature, top_p, min_p = params.temperature, params.top_p, params.min_p
    finite = math.isfinite(temperature)
    _require(finite and 0 <= temperature <= MAX_TEMPERATURE, "temperature", temperature, f"0 to {MAX_TEMPERATURE}")
    _require(math.isfinite(top_p) and 0 < top_p <= 1, "top_p", top_p, "above 0, up to 1")
    _require(math.isfinite(min_p) and 0 <= min_p <= 1, "min_p", min_p, "0 to 1")
    _require(0 <= params.top_k <= limits.vocab_size, "top_k", params.top_k, f"0 (keep all) to {limits.vocab_size}")
    _require(params.seed is None or 0 <= params.seed <= _MAX_SEED, "seed", params.seed, "0 to 2^64 - 1")
    _require(1 <= params.n <= MAX_CHOICES, "n", params.n, f"1 to {MAX_CHOICES}")
    _require(params.max_tokens is None or params.max_tokens >= 1, "max_tokens", params.max_tokens, "1 or more")
    _check_stops(params, limits)


def _check_stops(params: SamplingParams, limits: RequestLimits) -> None:
    count = len(params.stop_token_ids)
    _require(count <= MAX_STOP_TOKEN_IDS, "stop_token_ids", f"{count} ids", f"at most {MAX_STOP_TOKEN_IDS} ids")
    _check_ids("stop_token_ids", params.stop_token_ids, limits.vocab_size)
    _require(
        len(params.stop) <= MAX_STOP_STRINGS,
        "stop",
        f"{len(params.stop)} strings",
        f"at most {MAX_STOP_STRINGS} strings",
    )
    for at, stop in enumerate(params.stop):
        field = f"stop[{at}]"
        _check_text(field, stop)
        length_rule = f"1 to {MAX_STOP_STRING_CHARACTERS} characters"
        _require(1 <= len(stop) <= MAX_STOP_STRING_CHARACTERS, field, stop, length_rule)


def _check_lengths(request: GenerationRequest, limits: RequestLimits) -> None:
    """Prompt and output must fit. A prompt given as text is checked again when its ids are known."""
    if request.prompt_token_ids is None:
        return
    length, max_tokens = len(request.prompt_token_ids), request.sampling.max_tokens
    room = limits.max_model_len - length
    _require(room >= 1, "prompt", f"{length} tokens", f"fewer than {limits.max_model_len} tokens (max_model_len)")
    if max_tokens is not None:
        rule = f"at most {room}: the prompt has {length} tokens and max_model_len is {limits.max_model_len}"
        _require(max_tokens <= room, "max_tokens", max_tokens, rule)
    committed, longest = len(request.committed_token_ids), room if max_tokens is None else max_tokens
    _require(committed < longest, "committed_token_ids", f"{committed} ids", f"fewer than {longest} ids")


def _check_speculation(options: SpeculationOptions, limits: RequestLimits) -> None:
    depth, pool = options.max_depth, options.pool
    _require(
        depth is None or 0 <= depth <= limits.max_depth, "speculation.max_depth", depth, f"0 to {limits.max_depth}"
    )
    known = ", ".join(limits.pools) or "none: no draft pool is configured"
    _require(pool is None or pool in limits.pools, "speculation.pool", pool, known)
