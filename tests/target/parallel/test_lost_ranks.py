"""What an engine tells its requests when a rank is lost."""

from __future__ import annotations

from threading import Event

import pytest
import torch
from outrider_doubles.engine_bench import VOCAB_SIZE, EngineBench, toy_settings
from outrider_doubles.served_engine import served_engine
from outrider_doubles.toy_forward import ToyForward

from outrider_runtime.errors import EngineFailed, NotReady, OutriderError, RanksLost
from outrider_target.drafting.without_drafts import WithoutDrafts
from outrider_target.engine import Engine
from outrider_target.engine_thread import EngineThread
from outrider_target.forward import RaggedBatch
from outrider_wire.generation import GenerationRequest
from outrider_wire.sampling import SamplingParams

REQUEST = GenerationRequest(prompt_token_ids=(3, 4, 5), sampling=SamplingParams(temperature=0, max_tokens=20))


class Breaks(ToyForward):
    """Ends in its first step."""

    def __init__(self, error: Exception) -> None:
        super().__init__(vocab_size=VOCAB_SIZE)
        self._error = error

    def run(self, batch: RaggedBatch) -> torch.Tensor:
        raise self._error


@pytest.mark.parametrize(
    ("error", "told"),
    [(RanksLost("rank 1 is gone"), NotReady), (RuntimeError("a request did it"), EngineFailed)],
    ids=["rank", "other"],
)
async def test_requests_may_move_on_only_if_none_of_them_can_be_the_cause(
    error: Exception, told: type[OutriderError]
) -> None:
    async with served_engine(toy_settings(), Breaks(error), WithoutDrafts(), 0) as served:
        for expected in (told, NotReady):  # the first broke the engine, the next one has done nothing
            with pytest.raises(expected, match=f"the engine stopped: {type(error).__name__}"):
                async for _ in served.client.generate(REQUEST):
                    pass


def test_an_idle_engine_asks_for_signs_of_life_and_stops_without_them() -> None:
    asked = Event()

    def check_ranks() -> None:
        asked.set()
        raise RanksLost("rank 1 is gone")

    def build() -> Engine:
        return EngineBench(toy_settings()).engine

    thread = EngineThread(build, check_ranks)
    thread.start()
    assert asked.wait(30)
    thread.stop()
    assert isinstance(thread.failure, RanksLost)
