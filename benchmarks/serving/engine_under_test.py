"""A target's engine in this process, stepped by hand, with real draft workers in processes of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numba
import torch
from prometheus_client import CollectorRegistry

from load_block import Prompt
from outrider_runtime.clock import SystemClock
from outrider_runtime.errors import OutriderError
from outrider_runtime.models.loading import ModelDtype
from outrider_runtime.text.chat_template import ChatTemplate
from outrider_runtime.text.incremental_decoder import IncrementalDecoder
from outrider_runtime.text.tokenizer import Tokenizer
from outrider_target.control.depth_policy import StaticPolicy
from outrider_target.depth_control import DepthControl
from outrider_target.drafting.remote_speculator import RemoteSpeculator, VerifierIdentity
from outrider_target.drafting.settings import DraftingSettings
from outrider_target.drafting.speculator import Speculator
from outrider_target.drafting.without_drafts import WithoutDrafts
from outrider_target.engine import Engine
from outrider_target.engine_metrics import EngineMetrics
from outrider_target.forward import Forward
from outrider_target.forward_choice import choose_forward
from outrider_target.model_facts import ModelFacts
from outrider_target.settings import TargetSettings
from outrider_wire.generation import GenerationDelta, GenerationRequest
from outrider_wire.registry import DraftMember, Member, MemberKind, MemberState, Snapshot
from outrider_wire.sampling import SamplingParams

_POOL = {"name": "ngram", "method": "ngram", "prompt_lookup_min": 2, "prompt_lookup_max": 5}
_MAX_SESSIONS = 1024


@dataclass(slots=True)
class CountingSink:
    """Counts the tokens of one answer."""

    tokens: int = 0

    def put(self, delta: GenerationDelta) -> None:
        """Count a piece."""
        self.tokens += len(delta.token_ids)

    def fail(self, error: OutriderError) -> None:
        """A failed answer makes the profile worthless.

        Raises:
            OutriderError: that error.
        """
        raise error


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model ready to be served, with its tokenizer."""

    folder: Path
    tokenizer: Tokenizer
    forward: Forward
    served_by: str
    """Which forward pass it got, and why."""

    @classmethod
    def load(cls, folder: Path, dtype: ModelDtype, settings: TargetSettings) -> LoadedModel:
        """Load the model for this thread, with the number of threads that the settings ask for."""
        torch.set_num_threads(settings.num_threads)
        numba.set_num_threads(min(settings.num_threads, numba.config.NUMBA_NUM_THREADS))
        chosen = choose_forward(folder, dtype, settings.max_model_len)
        return cls(folder, Tokenizer.from_folder(folder), chosen.forward, chosen.description)

    def chat_ids(self, text: str) -> tuple[int, ...]:
        """Ids of a chat with one message."""
        rendered = ChatTemplate.from_folder(self.folder).render([{"role": "user", "content": text}])
        return tuple(self.tokenizer.encode(rendered, add_special_tokens=False))


@dataclass(slots=True)
class EngineUnderTest:
    """An engine and what was submitted to it."""

    engine: Engine
    speculator: Speculator
    worker_pids: tuple[int, ...]
    sinks: list[CountingSink] = field(default_factory=list)

    @property
    def committed_tokens(self) -> int:
        """Tokens of all answers so far."""
        return sum(sink.tokens for sink in self.sinks)

    def submit(self, model: LoadedModel, prompts: Sequence[Prompt], max_tokens: int) -> None:
        """Queue one greedy request for each prompt that goes on for `max_tokens` whatever it says."""
        sampling = SamplingParams(max_tokens=max_tokens, ignore_eos=True)
        for prompt in prompts:
            sink = CountingSink()
            request = GenerationRequest(prompt_token_ids=model.chat_ids(prompt.text), sampling=sampling)
            self.engine.submit(request, 0, sink)
            self.sinks.append(sink)


@contextmanager
def engine_under_test(
    model: LoadedModel, settings: TargetSettings, depth: int, num_workers: int
) -> Iterator[EngineUnderTest]:
    """An engine of the given depth; with a depth above 0 it is linked to `num_workers` draft workers."""
    registry, identity = CollectorRegistry(), _identity(model)
    speculator: Speculator = RemoteSpeculator(DraftingSettings(), identity, registry) if depth else WithoutDrafts()
    eos, tokenizer = model.tokenizer.eos_token_ids, model.tokenizer
    facts = ModelFacts(eos, lambda: IncrementalDecoder(tokenizer), "profiled")
    metrics = EngineMetrics(registry, "profiled")
    engine = Engine(
        settings, model.forward, speculator, facts, DepthControl(StaticPolicy(depth)), SystemClock(), metrics
    )
    with _workers(identity, num_workers if depth else 0) as members:
        speculator.update_members(Snapshot(members))
        try:
            yield EngineUnderTest(engine, speculator, tuple(member.pid for member in members))
        finally:
            speculator.stop()


def _identity(model: LoadedModel) -> VerifierIdentity:
    return VerifierIdentity("profiled-target", model.tokenizer.fingerprint, model.forward.vocab_size)


@contextmanager
def _workers(identity: VerifierIdentity, count: int) -> Iterator[tuple[Member, ...]]:
    vocab_size, pool = str(identity.vocab_size), json.dumps(_POOL)
    names = ["--tokenizer-fingerprint", identity.tokenizer_fingerprint, "--vocab-size", vocab_size, "--pool-json", pool]
    command = [sys.executable, "-m", "outrider_draft", *names]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(count)]
    try:
        yield tuple(_member(process) for process in processes)
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait()


def _member(process: subprocess.Popen[str]) -> Member:
    """A worker as the registry would list it, once it serves."""
    assert process.stdout is not None
    line = json.loads(process.stdout.readline())
    draft = DraftMember("ngram", "ngram", sessions=0, max_sessions=_MAX_SESSIONS)
    name, address = line["incarnation"], line["address"]
    return Member(name, MemberKind.DRAFT, MemberState.READY, address, "here", process.pid, draft=draft)
