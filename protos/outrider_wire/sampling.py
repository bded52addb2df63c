"""How each token of an answer is chosen, in domain words."""

from __future__ import annotations

from dataclasses import dataclass

MAX_CHOICES = 16
MAX_DEPTH = 64
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


@dataclass(frozen=True, slots=True)
class SpeculationOptions:
    """What one request asks of speculation. It changes the speed, never the tokens."""

    max_depth: int | None = None
    """Proposed tokens per round at most; 0 turns speculation off; None leaves it to the server."""
    pool: str | None = None
    """Use only this draft pool; None allows every pool."""
