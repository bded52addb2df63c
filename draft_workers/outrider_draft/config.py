"""Settings of draft pools. Knows keys and their bounds; imports no numeric library, so that checking them is instant.

A pool is a number of equal draft workers. Its `method` names the proposer; `methods.py` lists what there is.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import AfterValidator, Field, model_validator

from outrider_draft.scaling_settings import PoolScaling
from outrider_runtime.scaling_settings import check_one_number
from outrider_runtime.settings import MOST_BYTES, NAME_PATTERN, ByteSize, Settings
from outrider_wire.drafting import MAX_CHAIN_TOKENS

DEFAULT_LOOKUP_TOKENS = 5
"""Both lookup bounds when neither is given, as in vLLM."""
MAX_LOOKUP_TOKENS = 64
CORPUS_ENDINGS = (".jsonl", ".ndjson", ".txt")
"""Endings of files with documents; they say the form."""


_CLASS_PATH = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+")


def _check_class_path(path: str) -> str:
    if not _CLASS_PATH.fullmatch(path):
        raise ValueError("must be the path of a class, package.module.Class")
    return path


class PoolSettings(Settings):
    """Keys that every draft pool has, whatever its method."""

    name: str = Field(pattern=NAME_PATTERN)
    """Name of the pool: lower-case letters, digits and dashes, 63 characters at most."""
    method: str
    """Name of the proposer, for example `ngram`."""
    replicas: int = Field(default=1, ge=0, le=1024)
    """Draft workers of this pool."""
    autoscaling: PoolScaling | None = None
    """Instead of `replicas`: as many workers as targets have use for, within bounds."""
    max_sessions: int = Field(default=1024, ge=1, le=1 << 20)
    """Sessions that one worker holds at most; more are refused and tried elsewhere."""
    max_memory_bytes: ByteSize = Field(default=1 << 30, ge=1 << 16, le=MOST_BYTES)
    """Memory of all sessions of one worker, in bytes or as text such as 1GiB; what does not fit is refused."""
    max_model_len: int | None = Field(default=None, ge=1)
    """Proposals never reach beyond this many committed and proposed ids; None leaves that to the verifier."""
    num_speculative_tokens: int | None = Field(default=None, ge=1, le=MAX_CHAIN_TOKENS)
    """Proposed tokens per round at most; None leaves it to the verifier."""
    num_cpus: float = Field(default=0.0, ge=0, le=4096)
    """CPUs that each worker reserves in Ray; 0 schedules it anywhere."""

    @model_validator(mode="after")
    def _check_replicas(self) -> Self:
        """The number of workers is fixed or not."""
        check_one_number(self, self.autoscaling)
        return self

    @property
    def patience_s(self) -> float | None:
        """Seconds that a call of the proposer may take before its wishes are answered empty; None waits for it."""
        return None

    @property
    def resident_limit_bytes(self) -> int | None:
        """Memory of the worker's process beyond which it is to be replaced; None sets no limit."""
        return None


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


class SuffixPoolSettings(PoolSettings):
    """SuffixDecoding: what followed the last ids before, here or in finished outputs. Keys and defaults are vLLM's."""

    method: Literal["suffix"] = "suffix"
    """Name of the proposer."""
    suffix_decoding_max_tree_depth: int = Field(default=24, ge=1, le=256)
    """Matched run and proposal together, in ids, at most."""
    suffix_decoding_max_cached_requests: int = Field(default=10_000, ge=0, le=1 << 24)
    """Finished outputs to remember, first in, first out; 0 remembers none."""
    suffix_decoding_max_spec_factor: float = Field(default=1.0, ge=0, le=1000)
    """Proposed ids for each matched one at most."""
    suffix_decoding_min_token_prob: float = Field(default=0.1, ge=0, le=1)
    """Least estimated probability that a proposed id and all before it are right."""
    suffix_decoding_corpus_tokens: int | None = Field(default=None, ge=0)
    """Ids of finished outputs to remember; None leaves that to max_corpus_bytes, 0 remembers none."""
    max_corpus_bytes: ByteSize = Field(default=256 << 20, ge=1 << 17, le=MOST_BYTES)
    """Memory for finished outputs, besides max_memory_bytes; as much again for what corpus_files hold."""
    share_corpus: bool = False
    """Whether finished outputs of one tenant help others; they can be told from timing then."""
    corpus_files: tuple[str, ...] = ()
    """Documents that every tenant may see, read at the start: .jsonl or .txt; see docs/proposers.md."""


class CustomClassPoolSettings(PoolSettings):
    """A proposer that users write; see docs/proposers.md."""

    method: Literal["custom_class"] = "custom_class"
    """Name of the proposer."""
    model: Annotated[str, Field(max_length=500), AfterValidator(_check_class_path)]
    """Path of the class, `package.module.Class`; it must be importable where the workers run."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Handed to the class as they are."""
    call_timeout_ms: int = Field(default=250, ge=1, le=60_000)
    """A call that takes longer is answered with empty proposals; the next one waits until it has returned."""
    max_resident_bytes: ByteSize | None = Field(default=4 << 30, ge=1 << 26, le=MOST_BYTES)
    """Memory of the worker's process beyond which it is replaced, weights included; None sets no limit."""

    @property
    def patience_s(self) -> float | None:
        """Seconds that a call may take before its wishes are answered empty."""
        return self.call_timeout_ms / 1e3

    @property
    def resident_limit_bytes(self) -> int | None:
        """Memory of the worker's process beyond which it is to be replaced."""
        return self.max_resident_bytes
