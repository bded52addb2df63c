"""A target that still computes what it computed when it started, or stops.

Memory that breaks, and code that writes where it should not, change weights and tables of a running process, which goes
on answering, with other numbers. A text of known logits shows it.
"""

from __future__ import annotations

from outrider_runtime.clock import Clock
from outrider_runtime.errors import EngineFailed
from outrider_target.block_pool import BlockPool
from outrider_target.forward import Forward
from outrider_target.probe import fingerprint_blocks, logits_fingerprint


class SelfCheck:
    """Compares a fingerprint of logits with that of the start, now and then. Belongs to the engine's thread.

    Args:
        forward: what computes.
        pool: blocks of its cache, some of which a check borrows.
        expected: the fingerprint at the start.
        interval_s: seconds between two checks.
        clock: monotonic time.
    """

    def __init__(self, forward: Forward, pool: BlockPool, expected: str, interval_s: float, clock: Clock) -> None:
        self._forward = forward
        self._pool = pool
        self._expected = expected
        self._interval_s = interval_s
        self._clock = clock
        self._last_s = clock.now_s()

    def run_if_due(self) -> bool:
        """Check if it is time and blocks are free; takes one small step of the model. Returns whether it did.

        Raises:
            EngineFailed: the same text has other logits now.
        """
        now_s = self._clock.now_s()
        if now_s - self._last_s < self._interval_s:
            return False
        blocks = self._pool.allocate(fingerprint_blocks(self._forward))
        if blocks is None:
            return False
        found = logits_fingerprint(self._forward, blocks)
        self._pool.release(blocks)
        self._last_s = now_s
        if found != self._expected:
            raise EngineFailed(
                f"the logits of a fixed text have fingerprint {found}; at the start it was {self._expected}"
            )
        return True
