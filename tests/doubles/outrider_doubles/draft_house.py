"""A real target replica over a tiny model, and real draft workers of several kinds, all over gRPC in one process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from outrider_draft.identity import WorkerIdentity
from outrider_draft.methods import parse_pool
from outrider_draft.worker import DraftWorker
from outrider_runtime.errors import OutriderError
from outrider_target.control.depth_plan import DepthPlan
from outrider_target.drafting.settings import DraftingSettings
from outrider_target.replica import TargetReplica
from outrider_target.settings import ModelSettings, TargetSettings
from outrider_target.target_spec import TargetSpec
from outrider_wire.channel import open_channel
from outrider_wire.generate_client import GenerateClient
from outrider_wire.generation import Finished, GenerationDelta, GenerationRequest, TokenLogprobs
from outrider_wire.registry import Member, MemberKind, MemberState, Snapshot


@dataclass
class Outcome:
    """All that a client sees of an answer but its timing: to be compared between two ways of serving it."""

    token_ids: list[int] = field(default_factory=list)
    text: str = ""
    logprobs: list[TokenLogprobs] = field(default_factory=list)
    prompt_logprobs: list[TokenLogprobs] = field(default_factory=list)
    end: tuple[object, ...] = ()
    error: str = ""
    finished: Finished | None = field(default=None, compare=False)
    accepted_runs: list[range] = field(default_factory=list, compare=False)
    """Places in the answer of ids that one round took from one proposal, as far as they can be told."""

    def take(self, delta: GenerationDelta) -> None:
        """The next piece. Pieces that piled up come as one, which tells of its last round only: no place for that."""
        begin, report = len(self.token_ids), delta.round
        own = 0 if delta.finished is not None else 1  # an answer that ended at the target's own id is left out
        if report is not None and len(delta.token_ids) == report.accepted + own:
            self.accepted_runs.append(range(begin, begin + report.accepted))
        self.token_ids += delta.token_ids
        self.text += delta.text
        self.logprobs += delta.logprobs
        self.prompt_logprobs += delta.prompt_logprobs
        self.finished = delta.finished


@dataclass
class House:
    """A target with its client, and its draft workers by pool."""

    replica: TargetReplica
    client: GenerateClient
    workers: dict[str, DraftWorker] = field(default_factory=dict)
    addresses: dict[str, str] = field(default_factory=dict)
    """Of draft workers, by incarnation."""

    async def outcome(self, request: GenerationRequest) -> Outcome:
        """Ask, and gather the answer."""
        seen = Outcome()
        try:
            async for delta in self.client.generate(request):
                seen.take(delta)
        except OutriderError as error:
            seen.error = f"{type(error).__name__}: {error}"
        if seen.finished is not None:
            end = seen.finished
            seen.end = (end.reason, end.seed, end.completion_tokens, end.stop_token_id, end.stop_string)
        return seen

    async def hire(self, name: str, keys: Mapping[str, object]) -> None:
        """Start a draft worker for a pool and wait until the target is linked to all workers."""
        target = self.replica.member().target
        assert target is not None
        worker = DraftWorker(
            parse_pool({"name": name, **keys}), WorkerIdentity(target.tokenizer_fingerprint, target.vocab_size)
        )
        self.workers[name] = worker
        self.addresses[worker.incarnation] = await worker.start()
        await self.introduce()

    async def dismiss(self, name: str) -> None:
        """End a draft worker without any farewell."""
        await self.workers.pop(name).stop(grace_s=0)

    async def introduce(self) -> None:
        """Tell the target who drafts."""
        members = [
            Member(
                worker.incarnation,
                MemberKind.DRAFT,
                MemberState.READY,
                self.addresses[worker.incarnation],
                "node",
                1,
                worker.status(),
            )
            for worker in self.workers.values()
        ]
        self.replica.update_members(Snapshot(tuple(members)))
        async with asyncio.timeout(60):
            while not self._linked():
                await asyncio.sleep(0)

    def _linked(self) -> bool:
        target = self.replica.member().target
        assert target is not None
        ready = {link.incarnation for link in target.draft_links if link.state == "ready"}
        return ready >= {worker.incarnation for worker in self.workers.values()}


@asynccontextmanager
async def draft_house(
    model: Path, pools: tuple[str, ...], depth: int | DepthPlan = 5, **target: object
) -> AsyncIterator[House]:
    """Serve a model without draft workers, and stop everything in the end."""
    settings = {"max_num_seqs": 32, "max_model_len": 256, "kv_cache_memory_bytes": 1 << 23, "num_threads": 1, **target}
    spec = TargetSpec(
        ModelSettings(source=str(model), served_name="tiny", dtype="float32", cache_dir=str(model)),
        TargetSettings.model_validate(settings),
        DraftingSettings(draft_deadline_ms=500),
        DepthPlan(depth) if isinstance(depth, int) else depth,
        pools,
    )
    replica = TargetReplica(spec)
    channel = open_channel(await replica.start())
    house = House(replica, GenerateClient(channel))
    try:
        yield house
    finally:
        await channel.close()
        for name in list(house.workers):
            await house.dismiss(name)
        await replica.stop(0)
