"""Ranks that exchange what lies on their GPUs, by PyTorch's collectives.

They have met over sockets, which also carry what rank 0 decides: that way nobody waits for a GPU to hear it.
"""

from __future__ import annotations

import atexit
import socket
from collections.abc import Sequence
from datetime import timedelta

import numpy as np
import torch
import torch.distributed as dist
from torch._C._distributed_c10d import TCPStore

from outrider_target.parallel.socket_ranks import SocketRanks

_ADDRESS_BYTES = 256


class GroupRanks:
    """`Ranks` over a process group. Only moves bits: any dtype goes as bytes, and nothing is added up on the way.

    Args:
        group: of all ranks; nccl for tensors on GPUs, gloo for host memory.
    """

    def __init__(self, group: dist.ProcessGroup) -> None:
        self._group: dist.ProcessGroup | None = group
        self.rank = dist.get_rank(group)
        self.size = dist.get_world_size(group)

    def gather_all(self, part: torch.Tensor) -> Sequence[torch.Tensor]:
        """The parts of all ranks in order."""
        data = part.contiguous().view(-1).view(torch.uint8)
        gathered = data.new_empty(self.size * len(data))
        dist.all_gather_single(gathered, data, group=self._group)
        return [of_rank.view(part.dtype).view(part.shape) for of_rank in gathered.view(self.size, -1).unbind()]

    def gather_first(self, part: torch.Tensor) -> Sequence[torch.Tensor] | None:
        """The parts of all ranks in order, on rank 0. The others get them too, and look away."""
        parts = self.gather_all(part)
        return parts if self.rank == 0 else None

    def broadcast(self, values: torch.Tensor) -> None:
        """Overwrite `values` by those of rank 0."""
        dist.broadcast(values, group=self._group, group_src=0)

    def close(self) -> None:
        """Leave the group and end its threads. Nothing is exchanged afterwards.

        They let go of tensors late. One that does so when the interpreter is gone ends the process by SIGABRT; and they
        live as long as anyone holds the group, though torch has destroyed it.
        """
        dist.destroy_process_group(self._group)
        self._group = None


def join_group(ranks: SocketRanks, backend: str, timeout_s: float) -> GroupRanks:
    """A process group of ranks that have met. All of them call it at the same time, once in a process.

    It is left when the process ends.

    Args:
        ranks: more than one.
        backend: `nccl` or `gloo`.
        timeout_s: longest wait for a rank, here and in all exchanges that torch watches.

    Raises:
        RanksLost: a rank is gone.
    """
    address = torch.zeros(_ADDRESS_BYTES, dtype=torch.uint8)
    listener = socket.create_server((ranks.host, 0)) if ranks.rank == 0 else None
    if listener is not None:
        text = f"{ranks.host} {listener.getsockname()[1]}".encode()
        address[: len(text)] = torch.from_numpy(np.frombuffer(text, np.uint8).copy())
    ranks.broadcast(address)
    host, port = bytes(address.tolist()).rstrip(b"\0").decode().split()
    timeout = timedelta(seconds=timeout_s)
    # The store would listen on all addresses of the machine, were it not given one to listen on.
    store = TCPStore(
        host,
        int(port),
        ranks.size,
        is_master=listener is not None,
        timeout=timeout,
        wait_for_workers=False,
        master_listen_fd=None if listener is None else listener.detach(),
    )
    dist.init_process_group(backend, store=store, rank=ranks.rank, world_size=ranks.size, timeout=timeout)
    group = dist.group.WORLD
    assert group is not None, "it was just made"
    joined = GroupRanks(group)
    atexit.register(joined.close)
    return joined
