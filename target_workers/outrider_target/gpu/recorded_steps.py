"""Steps that the host starts as one: their launches are recorded once and replayed as a whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import torch


class Recorder(Protocol):
    """Records what a function does on the device."""

    def record(self, run: Callable[[], torch.Tensor]) -> Callable[[], torch.Tensor]:
        """What does the same again, on the same memory, whose contents may differ by then.

        Args:
            run: launches kernels, and neither waits for them nor looks at what they compute.

        Returns:
            Replays it; returns the same tensor each time, overwritten.
        """


class CudaRecorder:
    """CUDA graphs. All of them share one pool of memory: no two run at the same time.

    Args:
        device: a GPU.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._pool = torch.cuda.graph_pool_handle()

    def record(self, run: Callable[[], torch.Tensor]) -> Callable[[], torch.Tensor]:
        """Run it once, which compiles its kernels, then once more for the recording."""
        with torch.cuda.device(self._device):
            aside = torch.cuda.Stream()  # type: ignore[no-untyped-call]
            aside.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(aside):
                run()
            torch.cuda.current_stream().wait_stream(aside)
            graph = torch.cuda.CUDAGraph()
            # Threads of libraries may look at other work of theirs meanwhile (nccl's does): that is no error.
            with torch.cuda.graph(graph, pool=self._pool, capture_error_mode="thread_local"):
                logits = run()

        def replay() -> torch.Tensor:
            graph.replay()
            return logits

        return replay
