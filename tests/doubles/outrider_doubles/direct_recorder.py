"""A recorder without a GPU: what it replays is the function itself, on the memory that it was recorded with."""

from __future__ import annotations

from collections.abc import Callable

import torch


class DirectRecorder:
    """`Recorder` that hands out one tensor for ever, as a graph does, and overwrites it."""

    def __init__(self) -> None:
        self.recordings = 0

    def record(self, run: Callable[[], torch.Tensor]) -> Callable[[], torch.Tensor]:
        """Run it once, for the shape of what it returns."""
        logits = run()
        self.recordings += 1

        def replay() -> torch.Tensor:
            logits.copy_(run())
            return logits

        return replay
