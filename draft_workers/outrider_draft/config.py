"""Settings of draft pools. Knows keys and their bounds; imports no numeric library, so that checking them is instant.

A pool is a number of equal draft workers. Its `method` names the proposer; `methods.py` lists what there is.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from pydantic import Field, model_validator

from outrider_runtime.settings import ByteSize, Settings
from outrider_wire.drafting import MAX_CHAIN_TOKENS

DEFAULT_LOOKUP_TOKENS = 5
"""Both lookup bounds when neither is given, as in vLLM."""
MAX_LOOKUP_TOKENS = 64


class PoolSettings(Settings):
    """Keys that every draft pool has, whatever its method."""

    name: str = Field(pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")
    """Name of the pool: lower-case letters, digits and dashes, 63 characters at most."""
    method: str
    """Name of the proposer, for example `ngram`."""
    replicas: int = Field(default=1, ge=0, le=1024)
    """Draft workers of this pool."""
    max_sessions: int = Field(default=1024, ge=1, le=1 << 20)
    """Sessions that one worker holds at most; more are refused and tried elsewhere."""
    max_memory_bytes: ByteSize = Field(default=1 << 30, ge=1 << 16)
    """Memory of all sessions of one worker, in bytes or as text such as 1GiB; what does not fit is refused."""
    max_model_len: int | None = Field(default=None, ge=1)
    """Proposals never reach beyond this many committed and proposed ids; None leaves that to the verifier."""
    num_speculative_tokens: int | None = Field(default=None, ge=1, le=MAX_CHAIN_TOKENS)
    """Proposed tokens per round at most; None leaves it to the verifier."""
    num_cpus: float = Field(default=0.0, ge=0)
    """CPUs that each worker reserves in Ray; 0 schedules it anywhere."""


class LookupBounds(NamedTuple):
    """Shortest and longest run of ids to look up, both at least 1."""

    shortest: int
    longest: int


class NgramPoolSettings(PoolSettings):
    """Prompt lookup: what followed the last few ids where they occurred before. Keys and rules are vLLM's."""

    method: Literal["ngram"] = "ngram"
    """Name of the proposer."""
    prompt_lookup_min: int | None = Field(default=None, ge=1, le=MAX_LOOKUP_TOKENS)
    """Shortest run of ids to look up; None takes prompt_lookup_max, or 5 if that is absent too."""
    prompt_lookup_max: int | None = Field(default=None, ge=1, le=MAX_LOOKUP_TOKENS)
    """Longest run of ids to look up; None takes prompt_lookup_min, or 5 if that is absent too."""

    @property
    def lookup(self) -> LookupBounds:
        """Both bounds, with absent ones filled in."""
        low, high = self.prompt_lookup_min, self.prompt_lookup_max
        if low is None:
            low = DEFAULT_LOOKUP_TOKENS if high is None else high
        return LookupBounds(low, low if high is None else high)

    @model_validator(mode="after")
    def _check_order(self) -> NgramPoolSettings:
        """The shortest run is not longer than the longest."""
        shortest, longest = self.lookup
        if shortest > longest:
            raise ValueError(f"prompt_lookup_min {shortest} exceeds prompt_lookup_max {longest}")
        return self
