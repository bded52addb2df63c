"""An engine over the toy forward, stepped by hand, and what each request must give according to the toy's law."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import torch
from prometheus_client import CollectorRegistry

from outrider_doubles.toy_forward import ToyForward
from outrider_kernels.reference import sample_reference
from outrider_runtime.clock import ManualClock
from outrider_runtime.errors import OutriderError
from outrider_target.acceptance_rule import COUPLED_RULE, AcceptanceRule
from outrider_target.control.depth_policy import DepthPolicy, StaticPolicy
from outrider_target.control.latency_objectives import NO_OBJECTIVES, LatencyObjectives
from outrider_target.depth_control import DepthControl
from outrider_target.drafting.speculator import Speculator
from outrider_target.drafting.without_drafts import WithoutDrafts
from outrider_target.engine import Engine
from outrider_target.engine_metrics import EngineMetrics
from outrider_target.model_facts import ModelFacts
from outrider_target.settings import TargetSettings
from outrider_target.structure.compiler import Compiler
from outrider_target.structure.vocabulary import Spelling
from outrider_wire.generation import Finished, GenerationDelta, GenerationRequest, RoundReport, TokenLogprobs
from outrider_wire.sampling import SamplingParams

EOS = 1
VOCAB_SIZE = 40


class LetterDecoder:
    """Every id is one character, so that text and ids can be compared by eye."""

    def push(self, token_ids: Sequence[int]) -> str:
        """One character per id."""
        return "".join(letter(token) for token in token_ids)

    def flush(self) -> str:
        """Nothing is ever held back."""
        return ""


def letter(token: int) -> str:
    """The character of an id."""
    return chr(ord("A") + token)


COMPILER = Compiler(
    Spelling(
        tokens=[letter(token).encode() for token in range(VOCAB_SIZE)],
        special_token_ids=[EOS],
        eos_token_ids=[EOS],
        encode=lambda text: [ord(character) - ord("A") for character in text],
    )
)
"""Forms over the letters."""


@dataclass
class Collector:
    """A sink that keeps one answer."""

    token_ids: list[int] = field(default_factory=list)
    text: str = ""
    logprobs: list[TokenLogprobs] = field(default_factory=list)
    rounds: list[RoundReport] = field(default_factory=list)
    prompt_logprobs: list[TokenLogprobs] = field(default_factory=list)
    finished: Finished | None = None
    error: OutriderError | None = None

    def put(self, delta: GenerationDelta) -> None:
        """Keep a piece; none may follow the last one."""
        assert self.finished is None and self.error is None
        self.token_ids += delta.token_ids
        self.text += delta.text
        self.logprobs += delta.logprobs
        self.rounds += [] if delta.round is None else [delta.round]
        self.prompt_logprobs += delta.prompt_logprobs
        self.finished = delta.finished

    def fail(self, error: OutriderError) -> None:
        """Keep the failure."""
        assert self.finished is None and self.error is None
        self.error = error


class EngineBench:
    """An engine with everything around it in reach of a test."""

    def __init__(
        self,
        settings: TargetSettings,
        speculator: Speculator | None = None,
        depth: int | DepthPolicy = 0,
        forward: ToyForward | None = None,
        rule: AcceptanceRule = COUPLED_RULE,
        objectives: LatencyObjectives = NO_OBJECTIVES,
        logits_fingerprint: str | None = None,
    ) -> None:
        self.forward = forward or ToyForward(VOCAB_SIZE)
        self.registry = CollectorRegistry()
        self.clock = ManualClock()
        self.engine = Engine(
            settings,
            self.forward,
            speculator or WithoutDrafts(),
            ModelFacts(frozenset({EOS}), LetterDecoder, "toy", logits_fingerprint),
            DepthControl(StaticPolicy(depth) if isinstance(depth, int) else depth, objectives),
            self.clock,
            EngineMetrics(self.registry, "toy"),
            rule=rule,
        )

    def submit(self, request: GenerationRequest, seed: int) -> Collector:
        """Queue a request and return where its answer will be."""
        collector = Collector()
        constraint = COMPILER.compile(request.sampling) if request.sampling.is_structured else None
        self.engine.submit(request, seed, collector, constraint)
        return collector

    def run(self, max_steps: int = 10_000) -> None:
        """Step until nothing is left to do."""
        for _ in range(max_steps):
            if not self.engine.step():
                return
        raise AssertionError(f"still work after {max_steps} steps")

    def metric(self, name: str) -> float:
        """Value of a counter or gauge of this engine."""
        value = self.registry.get_sample_value(name, {"model_name": "toy"})
        assert value is not None, name
        return value


def toy_settings(**changes: object) -> TargetSettings:
    """Small bounds: blocks run out and prompts are chunked within a few requests. `blocks` sets the cache size."""
    blocks = int(str(changes.pop("blocks", 64)))
    values = {
        "max_num_seqs": 8,
        "max_num_batched_tokens": 32,
        "max_model_len": 128,
        "kv_cache_memory_bytes": blocks * 128,
    }
    return TargetSettings.model_construct(**{**TargetSettings().model_dump(), **values, **changes})


def expected_ids(
    forward: ToyForward,
    prompt: Sequence[int],
    sampling: SamplingParams,
    seed: int,
    count: int,
    output: Sequence[int] = (),
) -> list[int]:
    """The next `count` ids after `output` that plain one-by-one decoding gives, ends aside."""
    ids = [*prompt, *output]
    for position in range(len(ids), len(ids) + count):
        logits = changed_logits(forward.law(ids), sampling, prompt, ids[len(prompt) :])
        filters = (sampling.temperature, sampling.top_k, sampling.top_p, sampling.min_p)
        ids.append(sample_reference(torch.from_numpy(logits), *filters, seed, position))
    return ids[len(prompt) + len(output) :]


def changed_logits(
    logits: npt.NDArray[np.float32], sampling: SamplingParams, prompt: Sequence[int], output: Sequence[int]
) -> npt.NDArray[np.float32]:
    """Masks, bias and penalties of one position, spelled out from the whole prompt and output."""
    banned = {run[-1] for run in sampling.bad_word_ids if (*output, run[-1])[-len(run) :] == run}
    if len(output) < sampling.min_tokens:
        banned |= {EOS, *sampling.stop_token_ids}
    allowed = set(sampling.allowed_token_ids) or set(range(len(logits)))
    if sampling.is_structured:
        allowed &= admitted(sampling, output)
    changed = logits.copy()
    for token in range(len(logits)):
        if token in banned or token not in allowed:
            changed[token] = -np.inf
            continue
        changed[token] = z = np.float32(float(logits[token]) + sampling.logit_bias.get(token, 0.0))
        if token in prompt or token in output:
            repetition, count = sampling.repetition_penalty, list(output).count(token)
            scaled = float(z) / repetition if z > 0 else float(z) * repetition
            presence = sampling.presence_penalty if count else 0.0
            changed[token] = scaled - sampling.frequency_penalty * count - presence
    return changed


def admitted(sampling: SamplingParams, output: Sequence[int]) -> set[int]:
    """Ids that the form of an answer lets come after `output`, by a matcher that has seen nothing else."""
    if EOS in output:
        return {EOS}
    constraint = COMPILER.compile(sampling)
    assert constraint.take(output)
    bits = np.unpackbits(constraint.masks(()).view(np.uint8), bitorder="little")
    return set(np.flatnonzero(bits).tolist())
