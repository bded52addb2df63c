"""Ranks that are threads of one process: the collectives are a list and a barrier."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Barrier, BrokenBarrierError

import torch

from outrider_runtime.errors import RanksLost
from outrider_runtime.models.loading import ModelDtype
from outrider_target.forward_choice import ChosenForward, choose_forward, follow_choice
from outrider_target.parallel.ranks import ONE_RANK
from outrider_target.parallel.stepping import LeadingForward

MAX_MODEL_LEN = 128
_TIMEOUT_S = 120.0


@dataclass
class Meeting:
    """What the ranks share."""

    size: int
    parts: list[torch.Tensor | None] = field(init=False)
    barrier: Barrier = field(init=False)

    def __post_init__(self) -> None:
        """Nobody has brought anything."""
        self.parts = [None] * self.size
        self.barrier = Barrier(self.size, timeout=_TIMEOUT_S)


class ThreadRanks:
    """`Ranks` of one thread."""

    def __init__(self, meeting: Meeting, rank: int) -> None:
        self.rank = rank
        self.size = meeting.size
        self.exchanges = 0
        self._meeting = meeting

    def gather_all(self, part: torch.Tensor) -> Sequence[torch.Tensor]:
        """Copies of all parts."""
        meeting = self._meeting
        meeting.parts[self.rank] = part
        self._wait()
        parts = [part.clone() for part in meeting.parts if part is not None]
        self._wait()
        self.exchanges += 1
        assert len({(part.shape, part.dtype) for part in parts}) == 1, "gloo would mix up parts of different sizes"
        return parts

    def gather_first(self, part: torch.Tensor) -> Sequence[torch.Tensor] | None:
        """Copies of all parts on rank 0."""
        parts = self.gather_all(part)
        return parts if self.rank == 0 else None

    def broadcast(self, values: torch.Tensor) -> None:
        """Overwrite by those of rank 0."""
        values.copy_(self.gather_all(values)[0])

    def leave(self) -> None:
        """All others lose us."""
        self._meeting.barrier.abort()

    def _wait(self) -> None:
        try:
            self._meeting.barrier.wait()
        except BrokenBarrierError as error:
            raise RanksLost("a rank has left") from error


@contextmanager
def led_forward(folder: Path, size: int, dtype: ModelDtype = "float32") -> Iterator[ChosenForward]:
    """The forward pass of a model of which the body of the statement leads the ranks; they end with it."""
    meeting = Meeting(size)
    with ThreadPoolExecutor(size) as pool:
        followers = [pool.submit(_follow, ThreadRanks(meeting, rank), folder, dtype) for rank in range(1, size)]
        ranks = ThreadRanks(meeting, 0)
        try:
            chosen = choose_forward(folder, dtype, MAX_MODEL_LEN, ranks if size > 1 else ONE_RANK)
            yield chosen
            if isinstance(chosen.forward, LeadingForward):
                chosen.forward.dismiss()
        except BaseException:
            ranks.leave()
            raise
    for follower in followers:
        follower.result()


def _follow(ranks: ThreadRanks, folder: Path, dtype: ModelDtype) -> None:
    try:
        torch.set_num_threads(1)
        follow_choice(folder, dtype, MAX_MODEL_LEN, ranks)
    except BaseException:
        ranks.leave()
        raise
