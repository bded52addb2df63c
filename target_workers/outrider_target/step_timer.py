"""How long a step takes, learned from the steps before it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from outrider_runtime.clock import Clock

_WEIGHT_OF_NEWEST = 0.2


class StepTimer:
    """Decayed mean of step times by size class (tokens rounded up to a power of two). Starts with no opinion: 0 s."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._mean_s: dict[int, float] = {}
        self.last_s = 0.0

    def expect_s(self, num_tokens: int) -> float:
        """Expected time of a step with `num_tokens` tokens, from its size class or the nearest known one."""
        if not self._mean_s:
            return 0.0
        wanted = num_tokens.bit_length()
        nearest = min(self._mean_s, key=lambda size: (abs(size - wanted), size))
        return self._mean_s[nearest]

    @contextmanager
    def measure(self, num_tokens: int) -> Iterator[None]:
        """Time the body as one step with `num_tokens` tokens."""
        start_s = self._clock.now_s()
        yield
        self.last_s = self._clock.now_s() - start_s
        size = num_tokens.bit_length()
        mean_s = self._mean_s.get(size, self.last_s)
        self._mean_s[size] = mean_s + _WEIGHT_OF_NEWEST * (self.last_s - mean_s)
