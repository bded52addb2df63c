"""Why a sequence has nothing to choose from, and whose fault that is: mostly the request's, which narrowed it down."""

from __future__ import annotations

from outrider_runtime.errors import EngineFailed, InvalidRequest, OutriderError
from outrider_target.structure.constraint import Constraint
from outrider_wire.sampling import SamplingParams

_NOTHING_LEFT = "the model's logits leave no token to choose"
_RULE = "something that leaves a token to choose at every position, together with all else that this request prescribes"


def dead_end(sampling: SamplingParams, constraint: Constraint | None) -> OutriderError:
    """The error that ends a sequence of such a request, with such a form, where no token is left.

    Args:
        sampling: of the request.
        constraint: the form's, if there is one; it knows whether it gave up.
    """
    if constraint is not None and constraint.failure is not None:
        return _refusal(sampling, constraint.failure)
    if sampling.allowed_token_ids:
        return InvalidRequest("allowed_token_ids", sampling.allowed_token_ids, _RULE)
    if sampling.bad_word_ids:
        return InvalidRequest("bad_word_ids", sampling.bad_word_ids, _RULE)
    return EngineFailed(_NOTHING_LEFT) if constraint is None else _refusal(sampling, _RULE)


def _refusal(sampling: SamplingParams, allowed: str) -> InvalidRequest:
    if sampling.json_schema is not None:
        return InvalidRequest("json_schema", sampling.json_schema, allowed)
    if sampling.regex is not None:
        return InvalidRequest("regex", sampling.regex, allowed)
    return InvalidRequest("choices", sampling.choices, allowed)
