"""Times parts of a computation from outside, by wrapping what they call.

Times are exclusive: a part's time does not contain that of watched parts inside it, so that all parts add up to the
whole.
"""

from __future__ import annotations

import functools
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any


class Stopwatch:
    """Adds up seconds by label. For one thread; counts only inside `running`.

    Args:
        now_s: monotonic time in seconds.
    """

    def __init__(self, now_s: Callable[[], float] = time.perf_counter) -> None:
        self._now_s = now_s
        self._open: list[str] = []
        self._since_s = 0.0
        self._totals_s: dict[str, float] = defaultdict(float)

    @property
    def totals_s(self) -> Mapping[str, float]:
        """Seconds by label so far."""
        return self._totals_s

    @contextmanager
    def running(self, label: str) -> Iterator[None]:
        """Count while the body runs; what no watched part takes counts for `label`."""
        assert not self._open, "already running"
        self._since_s = self._now_s()
        with self._part(label):
            yield

    def watch(self, owner: object, name: str, label: str) -> None:
        """Count the time of `owner.name(...)` for `label` from now on. `owner` is a module, a class or an object."""
        setattr(owner, name, self.timed(getattr(owner, name), label))

    def watch_inside(self, owner: object, name: str, label: str, spent_s: Callable[[], Mapping[str, float]]) -> None:
        """The same, but what `spent_s` says that other labels took meanwhile counts for them."""
        inner = self.timed(getattr(owner, name), label)

        @functools.wraps(inner)
        def counted(*args: Any, **keywords: Any) -> Any:
            before_s = spent_s()
            result = inner(*args, **keywords)
            if self._open:
                for other, after_s in spent_s().items():
                    self._totals_s[other] += after_s - before_s[other]
                    self._totals_s[label] -= after_s - before_s[other]
            return result

        setattr(owner, name, counted)

    def timed(self, function: Callable[..., Any], label: str) -> Callable[..., Any]:
        """`function`, its time counted for `label`."""

        @functools.wraps(function)
        def counted(*args: Any, **keywords: Any) -> Any:
            if not self._open:
                return function(*args, **keywords)
            with self._part(label):
                return function(*args, **keywords)

        return counted

    @contextmanager
    def _part(self, label: str) -> Iterator[None]:
        self._settle()
        self._open.append(label)
        try:
            yield
        finally:
            self._settle()
            self._open.pop()

    def _settle(self) -> None:
        now_s = self._now_s()
        if self._open:
            self._totals_s[self._open[-1]] += now_s - self._since_s
        self._since_s = now_s
