"""How each token of an answer is chosen, in domain words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

MAX_BAD_WORD_CHARACTERS = 256
MAX_BAD_WORD_IDS = 1024
MAX_BAD_WORD_RUNS = 256
MAX_BAD_WORDS = 128
MAX_BIAS = 100.0
MAX_BIASED_IDS = 300
MAX_CHOICES = 16
MAX_CHOICE_TEXTS = 1024
MAX_CHOICE_TEXT_CHARACTERS = 1024
MAX_ALL_CHOICES_CHARACTERS = 65536
MAX_SCHEMA_BYTES = 65536
MAX_SCHEMA_DEPTH = 64
MAX_REGEX_CHARACTERS = 8192
MAX_DEPTH = 64
MAX_PENALTY = 2.0
MAX_LOGPROBS = 20
MAX_PROMPT_LOGPROBS_ENTRIES = 1 << 18
"""Prompt tokens times the log-probabilities of each: what fits into a message and an answer."""
MAX_STOP_STRINGS = 16
MAX_STOP_STRING_CHARACTERS = 256
MAX_STOP_TOKEN_IDS = 64
MAX_TEMPERATURE = 2.0


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """Sampling parameters of one request. The defaults mean greedy decoding to the model's limit.

    Bounds are those of ``SamplingParams`` in ``outrider/v1/common.proto``; `outrider_wire.validation` checks them.
    """

    temperature: float = 0.0
    top_k: int = 0
    """0 keeps all."""
    top_p: float = 1.0
    min_p: float = 0.0
    seed: int | None = None
    """None lets the server choose one below 2**53."""
    max_tokens: int | None = None
    """None means as many as fit into the model's length."""
    ignore_eos: bool = False
    stop_token_ids: tuple[int, ...] = ()
    stop: tuple[str, ...] = ()
    n: int = 1
    include_stop_str_in_output: bool = False
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    repetition_penalty: float = 1.0
    logit_bias: Mapping[int, float] = field(default_factory=dict)
    """Added to the logits of these ids."""
    allowed_token_ids: tuple[int, ...] = ()
    """Empty allows every id."""
    bad_words: tuple[str, ...] = ()
    """As clients write them; the gateway turns them into `bad_word_ids`."""
    bad_word_ids: tuple[tuple[int, ...], ...] = ()
    """The last id of a run may not come after the ids before it."""
    min_tokens: int = 0
    """Before so many tokens no end-of-sequence or stop id may come, and stop strings count for nothing."""
    logprobs: int | None = None
    """Log-probabilities wanted besides the chosen token's; None wants none at all."""
    json_schema: str | None = None
    """The answer is a JSON document that this JSON Schema admits."""
    regex: str | None = None
    """The whole answer matches this regular expression."""
    choices: tuple[str, ...] = ()
    """The answer is one of these texts; empty leaves it free."""
    prompt_logprobs: int | None = None
    """As `logprobs`, for the tokens of the prompt."""

    @property
    def is_structured(self) -> bool:
        """Whether the form of the answer is prescribed."""
        return self.json_schema is not None or self.regex is not None or bool(self.choices)


@dataclass(frozen=True, slots=True)
class SpeculationOptions:
    """What one request asks of speculation. It changes the speed, never the tokens."""

    max_depth: int | None = None
    """Proposed tokens per round at most; 0 turns speculation off; None leaves it to the server."""
    pool: str | None = None
    """Use only this draft pool; None allows every pool."""
    latency_class: str | None = None
    """How fast its tokens should come, by the name of a class of the configuration; None names none."""
