"""Random amounts of a scenario: tokens of a prompt, tokens of an answer."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
import numpy.typing as npt
from pydantic import BeforeValidator, Field, model_validator

from outrider_runtime.settings import Settings

Ints = npt.NDArray[np.int64]

_MAX_TOKENS = 1 << 20


class FixedTokens(Settings):
    """Always the same number."""

    kind: Literal["fixed"]
    tokens: int = Field(ge=1, le=_MAX_TOKENS)

    def draw(self, count: int, random: np.random.Generator) -> Ints:
        """[count] int64."""
        return np.full(count, self.tokens, np.int64)


class UniformTokens(Settings):
    """Every number from `low` to `high` is equally likely."""

    kind: Literal["uniform"]
    low: int = Field(ge=1, le=_MAX_TOKENS)
    high: int = Field(ge=1, le=_MAX_TOKENS)

    @model_validator(mode="after")
    def _check(self) -> UniformTokens:
        if self.low > self.high:
            raise ValueError(f"low {self.low} exceeds high {self.high}")
        return self

    def draw(self, count: int, random: np.random.Generator) -> Ints:
        """[count] int64."""
        return random.integers(self.low, self.high, count, endpoint=True)


class LognormalTokens(Settings):
    """Many short ones and a long tail, as real traffic has it."""

    kind: Literal["lognormal"]
    median: float = Field(ge=1, le=_MAX_TOKENS)
    spread: float = Field(default=0.7, ge=0, le=3)
    """Standard deviation of the logarithm."""
    high: int = Field(default=4096, ge=1, le=_MAX_TOKENS)
    """Longer ones are cut to this."""

    @model_validator(mode="after")
    def _check(self) -> LognormalTokens:
        if self.median > self.high:
            raise ValueError(f"median {self.median:g} exceeds high {self.high}")
        return self

    def draw(self, count: int, random: np.random.Generator) -> Ints:
        """[count] int64."""
        drawn = random.lognormal(np.log(self.median), self.spread, count)
        return np.clip(np.rint(drawn), 1, self.high).astype(np.int64)


def _number(value: object) -> object:
    return {"kind": "fixed", "tokens": value} if type(value) is int else value


Tokens = Annotated[FixedTokens | UniformTokens | LognormalTokens, Field(discriminator="kind"), BeforeValidator(_number)]
"""A kind and its numbers; a plain number is a fixed one."""
