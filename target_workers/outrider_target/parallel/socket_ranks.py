"""Ranks that are processes, with a TCP connection between any two of them.

Messages are small and many: two a layer, some kilobytes each. Blocking sockets pass them on in 20 to 70 microseconds
where PyTorch's gloo, with threads of its own on the way, took 1 to 2.5 milliseconds on the same two cores.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import torch

from outrider_runtime.errors import RanksLost

_SMALL_BYTES = 32 << 10
"""What the kernel's buffers surely hold: nobody need read for everybody to have sent."""
_BUFFER_BYTES = 200 << 10


class SocketRanks:
    """`Ranks` over connected sockets.

    Args:
        rank: of this process.
        peers: sockets to all other ranks.
        timeout_s: longest wait for a rank.
    """

    def __init__(self, rank: int, peers: Mapping[int, socket.socket], timeout_s: float) -> None:
        self.rank = rank
        self.size = len(peers) + 1
        self._peers = dict(sorted(peers.items()))
        for peer in peers.values():
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER_BYTES)
        self.set_timeout(timeout_s)

    @property
    def host(self) -> str:
        """Address of this process, as another rank reaches it."""
        return str(next(iter(self._peers.values())).getsockname()[0])

    def set_timeout(self, timeout_s: float) -> None:
        """Wait for a rank so long from now on."""
        self._timeout_s = timeout_s
        for peer in self._peers.values():
            peer.settimeout(timeout_s)

    def gather_all(self, part: torch.Tensor) -> Sequence[torch.Tensor]:
        """The parts of all ranks in order."""
        parts = [part if rank == self.rank else torch.empty_like(part) for rank in range(self.size)]
        ours = _bytes(part)
        if len(ours) <= _SMALL_BYTES:
            for rank in self._peers:
                self._send(rank, ours)
            for rank in self._peers:
                self._receive(rank, parts[rank])
            return parts
        # Two that send each other more than buffers hold would wait for ever: the lower rank speaks first. Pairs have
        # the same order everywhere, so no circle of ranks waits for itself either.
        for rank in self._peers:
            if self.rank < rank:
                self._send(rank, ours)
            self._receive(rank, parts[rank])
            if self.rank > rank:
                self._send(rank, ours)
        return parts

    def gather_first(self, part: torch.Tensor) -> Sequence[torch.Tensor] | None:
        """The parts of all ranks in order, on rank 0."""
        if self.rank:
            self._send(0, _bytes(part))
            return None
        parts = [part, *(torch.empty_like(part) for _ in self._peers)]
        for rank in self._peers:
            self._receive(rank, parts[rank])
        return parts

    def broadcast(self, values: torch.Tensor) -> None:
        """Overwrite `values` by those of rank 0."""
        if self.rank:
            self._receive(0, values)
        else:
            for rank in self._peers:
                self._send(rank, _bytes(values))

    def close(self) -> None:
        """Leave: whoever waits for us learns at once that we are gone."""
        for peer in self._peers.values():
            peer.close()

    def _send(self, rank: int, data: memoryview) -> None:
        self._exchange(rank, lambda: self._peers[rank].sendall(data))

    def _receive(self, rank: int, values: torch.Tensor) -> None:
        self._exchange(rank, lambda: _fill(self._peers[rank], _bytes(values)))

    def _exchange(self, rank: int, exchange: Callable[[], None]) -> None:
        try:
            exchange()
        except TimeoutError as error:
            raise RanksLost(f"rank {rank} of {self.size} did not answer within {self._timeout_s:g} s") from error
        except OSError as error:
            raise RanksLost(f"rank {rank} of {self.size} is gone: {error}") from error


def _fill(peer: socket.socket, data: memoryview) -> None:
    filled = 0
    while filled < len(data):
        count = peer.recv_into(data[filled:])
        if count == 0:
            raise ConnectionResetError("it closed the connection")
        filled += count


def _bytes(tensor: torch.Tensor) -> memoryview:
    """A tensor's own memory: whatever the dtype, it is only moved."""
    numbers: npt.NDArray[np.uint8] = tensor.view(-1).view(torch.uint8).numpy()
    return numbers.data
