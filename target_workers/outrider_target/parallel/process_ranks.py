"""Ranks that are processes, over PyTorch's gloo."""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
from torch._C._distributed_c10d import (
    AllgatherOptions,
    BroadcastOptions,
    GatherOptions,
    ProcessGroupGloo,
    TCPStore,
)

from outrider_runtime.errors import RanksLost

START_TIMEOUT_S = 600.0
"""For all ranks to be there and to have loaded: compiling and slow disks included."""


@dataclass(frozen=True, slots=True)
class MeetingPoint:
    """Where the ranks of one target find each other: a key-value store in rank 0's process. Trusts its network."""

    host: str
    port: int
    size: int


class MeetingHost:
    """The meeting point itself, open until it is closed.

    Args:
        host: address to listen on, and to tell the others.
        size: number of ranks.
    """

    def __init__(self, host: str, size: int) -> None:
        listener = socket.create_server((host, 0))
        self.point = MeetingPoint(host, int(listener.getsockname()[1]), size)
        # The store takes the descriptor over. Without one it would listen on every address of the machine.
        self._store = _store(self.point, is_host=True, listener=listener.detach())


def join(point: MeetingPoint, rank: int, host: str, timeout_s: float = START_TIMEOUT_S) -> ProcessRanks:
    """Meet the other ranks. Blocks until all are there.

    Args:
        point: of rank 0.
        rank: of this process.
        host: address of this process, on which it listens for the others.
        timeout_s: longest wait here and in all exchanges, until `set_timeout`.

    Raises:
        RanksLost: not all came in time.
    """
    gloo: Any = ProcessGroupGloo  # its type stub knows no devices
    options = gloo._Options()
    options._devices = [gloo.create_device(hostname=host)]
    options._timeout = timedelta(seconds=timeout_s)
    try:
        store = _store(point, is_host=False)
        group = gloo(store, rank, point.size, options)
    except RuntimeError as error:
        raise RanksLost(f"rank {rank} of {point.size} could not meet the others: {error}") from error
    return ProcessRanks(group, rank, point.size, timeout_s)


class ProcessRanks:
    """`Ranks` over a process group.

    Args:
        group: of PyTorch; all collectives of it are ours.
        rank: of this process.
        size: number of ranks.
        timeout_s: longest wait for one exchange.
    """

    def __init__(self, group: Any, rank: int, size: int, timeout_s: float) -> None:
        self._group = group
        self.rank = rank
        self.size = size
        self.set_timeout(timeout_s)

    def set_timeout(self, timeout_s: float) -> None:
        """Wait for so long in each exchange from now on."""
        self._timeout = timedelta(seconds=timeout_s)

    def gather_all(self, part: torch.Tensor) -> Sequence[torch.Tensor]:
        """The parts of all ranks in order."""
        parts = [torch.empty_like(part) for _ in range(self.size)]
        options = AllgatherOptions()
        options.timeout = self._timeout
        self._exchange(lambda: self._group.allgather([[_bytes(p) for p in parts]], [_bytes(part)], options))
        return parts

    def gather_first(self, part: torch.Tensor) -> Sequence[torch.Tensor] | None:
        """The parts of all ranks in order, on rank 0."""
        parts = [torch.empty_like(part) for _ in range(self.size)] if self.rank == 0 else []
        options = GatherOptions()
        options.timeout = self._timeout
        options.rootRank = 0
        outputs = [[_bytes(p) for p in parts]] if parts else []
        self._exchange(lambda: self._group.gather(outputs, [_bytes(part)], options))
        return parts or None

    def broadcast(self, values: torch.Tensor) -> None:
        """Overwrite `values` by those of rank 0."""
        options = BroadcastOptions()
        options.timeout = self._timeout
        options.rootRank = 0
        self._exchange(lambda: self._group.broadcast([_bytes(values)], options))

    def close(self) -> None:
        """Leave: whoever waits for us learns at once that we are gone."""
        self._group.shutdown()

    def _exchange(self, begin: Callable[[], Any]) -> None:
        try:
            begin().wait()
        except RuntimeError as error:
            silent = "timed out" in str(error).lower()
            fate = f"did not answer within {self._timeout.total_seconds():g} s" if silent else "is gone"
            raise RanksLost(f"rank {self.rank} of {self.size}: another rank {fate}") from error


def _store(point: MeetingPoint, is_host: bool, listener: int | None = None) -> TCPStore:
    return TCPStore(
        point.host,
        point.port,
        is_master=is_host,
        timeout=timedelta(seconds=START_TIMEOUT_S),
        wait_for_workers=False,
        master_listen_fd=listener,
    )


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    """Its memory: whatever the dtype, it is only moved."""
    return tensor.view(-1).view(torch.uint8)
