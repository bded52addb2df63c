"""Requests for text and the pieces of an answer, in domain words."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from outrider_wire.sampling import SamplingParams, SpeculationOptions


class FinishReason(Enum):
    """Why a choice ended."""

    STOP = "stop"
    LENGTH = "length"
    ABORT = "abort"


class RejectionSampleMethod(Enum):
    """By which rule proposed tokens are accepted."""

    COUPLED = "coupled"
    """Equality with the target's own token, with noise that drafters share."""
    STRICT = "strict"
    """The same, with noise that drafters do not share."""
    PROBABILISTIC = "probabilistic"
    """The ratio of the target's and the drafter's probability, token by token."""
    BLOCK = "block"
    """The same ratio over whole proposals."""
    SYNTHETIC = "synthetic"
    """Pretended, whatever the tokens are."""


@dataclass(frozen=True, slots=True)
class GenerationRequest:
    """One prompt to continue. Exactly one of `prompt_text` and `prompt_token_ids` is set.

    Between gateway and target only ids travel, `sampling.seed` is set and `sampling.n` is 1.
    """

    request_id: str = ""
    model: str = ""
    prompt_text: str | None = None
    prompt_token_ids: tuple[int, ...] | None = None
    sampling: SamplingParams = field(default_factory=SamplingParams)
    speculation: SpeculationOptions = field(default_factory=SpeculationOptions)
    tenant: str = ""
    committed_token_ids: tuple[int, ...] = ()
    """Output ids already delivered by another replica; the answer goes on after them."""


@dataclass(frozen=True, slots=True)
class SpeculationStatistics:
    """What speculation did for one choice; counts of tokens and rounds."""

    num_spec_steps: int = 0
    """Rounds in which at least one proposed token was verified."""
    num_draft_tokens: int = 0
    num_accepted_draft_tokens: int = 0
    num_fallback_steps: int = 0
    """Rounds in which a draft was wanted but none was usable."""
    num_spec_tokens: int = 0
    """Configured depth; 0 when speculation is off."""
    draft_wait_us: int = 0
    per_step_drafted: tuple[int, ...] = ()
    per_step_accepted: tuple[int, ...] = ()
    accepted_by_pool: dict[str, int] = field(default_factory=dict)
    drafted_by_pool: dict[str, int] = field(default_factory=dict)
    rejection_sample_method: RejectionSampleMethod = RejectionSampleMethod.COUPLED


@dataclass(frozen=True, slots=True)
class Finished:
    """The end of one choice."""

    reason: FinishReason
    seed: int
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int = 0
    stop_token_id: int | None = None
    stop_string: str | None = None
    speculation: SpeculationStatistics = field(default_factory=SpeculationStatistics)
    queue_time_us: int = 0
    time_to_first_token_us: int = 0
    generation_time_us: int = 0
    mixed_logits: bool = False
    """Whether targets with different logits computed it one after another: no target alone need give it again."""


@dataclass(frozen=True, slots=True)
class Alternative:
    """An id that might have been chosen, and its log-probability."""

    token_id: int
    logprob: float


@dataclass(frozen=True, slots=True)
class TokenLogprobs:
    """How likely a token was to the model itself, before anything that the request changes about it."""

    token_id: int
    logprob: float
    top: tuple[Alternative, ...] = ()
    """The likeliest ids, likeliest first."""
    rank: int = 1
    """Place of the token among all ids in the order of `top`, 1 or more."""


@dataclass(frozen=True, slots=True)
class RoundReport:
    """What speculation did for one choice in one round in which a draft was wanted."""

    pool: str = ""
    """Where the verified proposal came from; empty when none was usable, so that it was a plain decode step."""
    drafted: int = 0
    accepted: int = 0
    draft_wait_us: int = 0


@dataclass(frozen=True, slots=True)
class GenerationDelta:
    """One message of an answer: new ids, new text, and on the last message of a choice its end."""

    index: int = 0
    token_ids: tuple[int, ...] = ()
    text: str = ""
    finished: Finished | None = None
    logprobs: tuple[TokenLogprobs, ...] = ()
    """One for each of `token_ids`, where they were asked for."""
    round: RoundReport | None = None
    """Of the round that committed `token_ids`; None where no draft was wanted."""
    prompt_logprobs: tuple[TokenLogprobs, ...] = ()
    """One for each prompt token but the first, where they were asked for: all in the first delta that has ids."""
