"""A target over real gRPC whose answers a test decides."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field

from outrider_doubles.byte_text import VOCAB_SIZE, ByteTokenizer
from outrider_wire.generate_service import CallInfo, generate_service
from outrider_wire.generation import (
    Alternative,
    Finished,
    FinishReason,
    GenerationDelta,
    GenerationRequest,
    RoundReport,
    SpeculationStatistics,
    TokenLogprobs,
)
from outrider_wire.registry import Member, MemberKind, MemberState, TargetMember
from outrider_wire.server import StartedServer, start_server

MODEL = "scripted"
STATISTICS = SpeculationStatistics(
    num_spec_steps=4,
    num_draft_tokens=12,
    num_accepted_draft_tokens=6,
    num_fallback_steps=1,
    num_spec_tokens=3,
    draft_wait_us=1500,
    per_step_drafted=(3, 3, 3, 3),
    per_step_accepted=(0, 1, 2, 3),
    accepted_by_pool={"ngram": 6},
    drafted_by_pool={"ngram": 12},
)


def letters(request: GenerationRequest) -> bytes:
    """An answer that depends on seed and prompt: letters, as many as the request allows."""
    assert request.prompt_token_ids is not None and request.sampling.seed is not None
    start = request.sampling.seed + sum(request.prompt_token_ids)
    count = 24 if request.sampling.max_tokens is None else request.sampling.max_tokens
    return bytes(ord("a") + (start + 7 * i * i) % 26 for i in range(count))


def _logprobs(request: GenerationRequest, token: int, position: int) -> tuple[TokenLogprobs, ...]:
    """As many as the request asks for; the likeliest are a byte that is no character, and impossible ids."""
    wanted = request.sampling.logprobs
    if wanted is None:
        return ()
    others = (Alternative(0xE2, -0.25), *(Alternative(place, -math.inf) for place in range(1, wanted)))
    return (TokenLogprobs(token, -0.5 - position, others[:wanted]),)


async def at_once(request: GenerationRequest, position: int) -> None:
    """Every token comes at once."""


def no_round(position: int) -> RoundReport | None:
    """No draft was wanted."""
    return None


@dataclass
class ScriptedTarget:
    """Answers byte by byte. `answer` is the whole answer of a request; `before_token` may wait, raise or kill."""

    incarnation: str = "target-1"
    answer: Callable[[GenerationRequest], bytes] = letters
    before_token: Callable[[GenerationRequest, int], Awaitable[None]] = at_once
    reason: FinishReason = FinishReason.LENGTH
    round_at: Callable[[int], RoundReport | None] = no_round
    statistics: SpeculationStatistics = STATISTICS
    """Of every answer that may be drafted for."""
    max_model_len: int = 512
    depth_reason: str = "static"
    logits_fingerprint: str = "f0"
    requests: list[GenerationRequest] = field(default_factory=list)
    deadlines_s: list[float | None] = field(default_factory=list)
    running: int = 0
    cancelled: int = 0
    idle: asyncio.Event = field(default_factory=asyncio.Event)
    server: StartedServer | None = None

    async def start(self) -> None:
        """Serve on a free port."""
        self.server = await start_server("127.0.0.1", 0, [generate_service(self)])

    async def die(self) -> None:
        """Go away at once, calls in progress included."""
        if self.server is not None:
            await self.server.stop(0)

    def member(self, state: MemberState = MemberState.READY) -> Member:
        """As a registry lists it."""
        assert self.server is not None
        target = TargetMember(
            model=MODEL,
            running=0,
            waiting=0,
            kv_usage=0.25,
            exact=True,
            exact_reason="probed",
            depth=3,
            depth_reason=self.depth_reason,
            tokenizer_fingerprint=ByteTokenizer.fingerprint,
            vocab_size=VOCAB_SIZE,
            max_model_len=self.max_model_len,
            logits_fingerprint=self.logits_fingerprint,
        )
        address = self.server.address
        return Member(self.incarnation, MemberKind.TARGET, state, address, "node", 1, target=target)

    async def generate(self, request: GenerationRequest, call: CallInfo) -> AsyncGenerator[GenerationDelta, None]:
        self.requests.append(request)
        self.deadlines_s.append(call.remaining_s)
        self.running += 1
        self.idle.clear()
        try:
            async for delta in self._answer(request):
                yield delta
        except (asyncio.CancelledError, GeneratorExit):
            self.cancelled += 1
            raise
        finally:
            self.running -= 1
            if not self.running:
                self.idle.set()

    async def _answer(self, request: GenerationRequest) -> AsyncGenerator[GenerationDelta, None]:
        whole = self.answer(request)
        begin = len(request.committed_token_ids)
        assert tuple(whole[:begin]) == request.committed_token_ids, "a moved request must bring the ids given so far"
        for position in range(begin, len(whole)):
            await self.before_token(request, position)
            last = position == len(whole) - 1
            yield GenerationDelta(
                token_ids=(whole[position],),
                text=whole[position : position + 1].decode("latin-1"),
                finished=self._finished(request, len(whole)) if last else None,
                logprobs=_logprobs(request, whole[position], position),
                round=self.round_at(position),
            )

    def _finished(self, request: GenerationRequest, count: int) -> Finished:
        assert request.prompt_token_ids is not None and request.sampling.seed is not None
        off = request.speculation.max_depth == 0
        return Finished(
            reason=self.reason,
            seed=request.sampling.seed,
            prompt_tokens=len(request.prompt_token_ids),
            completion_tokens=count,
            cached_tokens=2,
            speculation=SpeculationStatistics() if off else self.statistics,
            queue_time_us=1000,
            time_to_first_token_us=20000,
            generation_time_us=230000,
        )
