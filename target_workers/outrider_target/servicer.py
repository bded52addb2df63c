"""The target's face: GenerateService for gateways. Requests come in as token ids with one choice each."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from collections.abc import Sequence as SequenceOf
from dataclasses import replace
from itertools import takewhile
from random import SystemRandom

from outrider_runtime.errors import DeadlineExceeded, InvalidRequest, OutriderError, Words
from outrider_target.engine import Engine
from outrider_target.sink import Delivery, deliver
from outrider_target.structure.compiler import Compiler
from outrider_wire.generate_service import CallInfo
from outrider_wire.generation import GenerationDelta, GenerationRequest
from outrider_wire.seeds import choose_seed
from outrider_wire.validation import RequestLimits, validate_request


class AsyncSink:
    """Brings one answer from the engine's thread to an asyncio loop.

    Pieces that pile up are merged, but for those that report a round: each report is of its own piece's ids.
    """

    def __init__(self) -> None:
        self._pieces: list[GenerationDelta] = []
        self._error: OutriderError | None = None
        self._arrived = asyncio.Event()

    def put(self, delta: GenerationDelta) -> None:
        """The next piece; called on the loop."""
        self._pieces.append(delta)
        self._arrived.set()

    def fail(self, error: OutriderError) -> None:
        """The answer ends here; called on the loop."""
        self._error = error
        self._arrived.set()

    async def next(self) -> GenerationDelta:
        """What has arrived since the last call, as few deltas as can be. What came before an error is seen before it.

        Raises:
            OutriderError: the answer failed.
        """
        await self._arrived.wait()
        if not self._pieces:
            assert self._error is not None, "only pieces and errors arrive"
            raise self._error
        count = max(1, sum(1 for _ in takewhile(lambda piece: piece.round is None, self._pieces)))
        pieces, self._pieces = self._pieces[:count], self._pieces[count:]
        if not self._pieces and self._error is None:
            self._arrived.clear()
        return merge(pieces)


def merge(pieces: SequenceOf[GenerationDelta]) -> GenerationDelta:
    """Consecutive pieces of one answer as one; several only where none reports a round."""
    return replace(
        pieces[-1],
        token_ids=tuple(token for piece in pieces for token in piece.token_ids),
        text="".join(piece.text for piece in pieces),
        logprobs=tuple(item for piece in pieces for item in piece.logprobs),
        prompt_logprobs=tuple(item for piece in pieces for item in piece.prompt_logprobs),
    )


def deliver_on(loop: asyncio.AbstractEventLoop) -> Callable[[SequenceOf[Delivery]], None]:
    """Deliver the pieces of a step on `loop`, with one wake-up for all of them."""

    def deliver_all(deliveries: SequenceOf[Delivery]) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(deliver, deliveries)

    return deliver_all


class TargetServicer:
    """`GenerateHandler` over an engine.

    Args:
        engine: runs the requests.
        compiler: makes constraints of the forms that requests prescribe.
        limits: bounds of requests; checked here too, since whoever reaches this port is not trusted to have done it.
    """

    def __init__(self, engine: Engine, limits: RequestLimits, compiler: Compiler) -> None:
        self._engine = engine
        self._limits = limits
        self._compiler = compiler

    async def generate(self, request: GenerationRequest, call: CallInfo) -> AsyncIterator[GenerationDelta]:
        """Stream one answer. Leaving the iterator early, or the deadline, frees everything within a step."""
        request = validate_request(request, self._limits)
        if request.prompt_token_ids is None:
            raise InvalidRequest("prompt", Words("text"), "token ids: a target has no tokenizer for clients")
        if request.sampling.n != 1:
            raise InvalidRequest("sampling.n", request.sampling.n, "1 on a target: gateways send choices one by one")
        if request.sampling.bad_words:
            raise InvalidRequest("bad_words", request.sampling.bad_words, "bad_word_ids: a target has no tokenizer")
        seed = choose_seed(SystemRandom().getrandbits) if request.sampling.seed is None else request.sampling.seed
        sink = AsyncSink()
        key = self._engine.submit(request, seed, sink, await self._compiler.constraint(request.sampling))
        loop = asyncio.get_running_loop()
        deadline_s = None if call.remaining_s is None else loop.time() + call.remaining_s
        try:
            while True:
                async with asyncio.timeout_at(deadline_s):  # not around the yield: that is the caller's time
                    delta = await sink.next()
                yield delta
                if delta.finished is not None:
                    return
        except TimeoutError as error:
            raise DeadlineExceeded("the deadline of the call passed") from error
        finally:
            self._engine.cancel(key)
