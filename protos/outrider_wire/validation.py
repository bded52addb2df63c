"""The one validator of generation requests, used by the HTTP and gRPC front ends and again by targets."""

from __future__ import annotations

import re
from dataclasses import dataclass

from outrider_runtime.errors import UnknownModel, Words, shorten
from outrider_wire.generation import GenerationRequest
from outrider_wire.requirements import check_ids, check_text, require
from outrider_wire.sampling import MAX_DEPTH, MAX_PROMPT_LOGPROBS_ENTRIES, SpeculationOptions
from outrider_wire.sampling_bounds import check_sampling

_NAME = re.compile(r"[A-Za-z0-9._-]{0,64}")
_NAME_RULE = "0 to 64 characters of A-Z a-z 0-9 . _ -"


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """What requests are held to."""

    models: tuple[str, ...]
    vocab_size: int
    max_model_len: int
    """Prompt and output tokens of one request at most."""
    pools: tuple[str, ...] = ()
    latency_classes: tuple[str, ...] = ()
    max_depth: int = MAX_DEPTH


def validate_request(request: GenerationRequest, limits: RequestLimits) -> GenerationRequest:
    """Check a request and return it unchanged.

    Raises:
        InvalidRequest: a field is outside its bounds; field, value and bounds are named.
        UnknownModel: another model is asked for.
    """
    if request.model and request.model not in limits.models:
        raise UnknownModel(f"model {shorten(request.model)} is not served here; served: {', '.join(limits.models)}")
    _check_name("request_id", request.request_id)
    _check_name("tenant", request.tenant)
    _check_prompt(request, limits)
    check_sampling(request.sampling, limits.vocab_size)
    _check_lengths(request, limits)
    _check_speculation(request.speculation, limits)
    return request


def _check_name(field: str, value: str) -> None:
    require(_NAME.fullmatch(value) is not None, field, value, _NAME_RULE)


def _check_prompt(request: GenerationRequest, limits: RequestLimits) -> None:
    text, ids = request.prompt_text, request.prompt_token_ids
    found = Words("both text and token_ids" if text is not None else "nothing")
    require((text is None) != (ids is None), "prompt", found, "exactly one of text and token_ids")
    if text is not None:
        check_text("prompt", text)
        require(bool(text), "prompt", text, "at least 1 character")
    if ids is not None:
        require(bool(ids), "prompt", ids, "at least 1 token")
        check_ids("prompt", ids, limits.vocab_size)
    check_ids("committed_token_ids", request.committed_token_ids, limits.vocab_size)


def _check_lengths(request: GenerationRequest, limits: RequestLimits) -> None:
    """Prompt and output must fit. A prompt given as text is checked again when its ids are known."""
    if request.prompt_token_ids is None:
        return
    length, max_tokens = len(request.prompt_token_ids), request.sampling.max_tokens
    room = limits.max_model_len - length
    require(room >= 1, "prompt", Words(f"{length} tokens"), f"fewer than {limits.max_model_len} tokens (max_model_len)")
    if max_tokens is not None:
        rule = f"at most {room}: the prompt has {length} tokens and max_model_len is {limits.max_model_len}"
        require(max_tokens <= room, "max_tokens", max_tokens, rule)
    least = request.sampling.min_tokens
    require(least <= room, "min_tokens", least, f"at most {room}: the prompt has {length} tokens")
    wanted = request.sampling.prompt_logprobs
    if wanted is not None:
        rule = (
            f"so few that {length} prompt tokens times (prompt_logprobs + 1) is at most {MAX_PROMPT_LOGPROBS_ENTRIES}"
        )
        require(length * (wanted + 1) <= MAX_PROMPT_LOGPROBS_ENTRIES, "prompt_logprobs", wanted, rule)
    committed, longest = len(request.committed_token_ids), room if max_tokens is None else max_tokens
    require(committed < longest, "committed_token_ids", Words(f"{committed} ids"), f"fewer than {longest} ids")


def _check_speculation(options: SpeculationOptions, limits: RequestLimits) -> None:
    depth, pool, latency_class = options.max_depth, options.pool, options.latency_class
    require(depth is None or 0 <= depth <= limits.max_depth, "speculation.max_depth", depth, f"0 to {limits.max_depth}")
    known = ", ".join(limits.pools) or "none: no draft pool is configured"
    require(pool is None or pool in limits.pools, "speculation.pool", pool, known)
    classes = ", ".join(limits.latency_classes) or "none: no latency class is configured"
    is_known = latency_class is None or latency_class in limits.latency_classes
    require(is_known, "speculation.latency_class", latency_class, classes)
