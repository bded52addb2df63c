"""One round: propose, verify, commit. This page is the heart of the system; everything else serves it.

A round runs on the engine's thread. It waits for the network in one place only, while collecting proposals, and never
beyond the draft deadline: a draft that is late, lost or wrong makes this a plain decode step of its row.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from outrider_runtime.clock import Clock
from outrider_runtime.errors import OutriderError
from outrider_target.acceptance_rule import AcceptanceRule
from outrider_target.batch import Step, ragged_batch, split_logits
from outrider_target.commitment import Commitment, cut
from outrider_target.depth_control import DepthControl
from outrider_target.drafting.speculator import Proposal
from outrider_target.engine_metrics import EngineMetrics
from outrider_target.forward import Forward
from outrider_target.scheduler import Row, Scheduler
from outrider_target.sequence import Sequence
from outrider_target.sequence_drafting import SequenceDrafting
from outrider_target.step_timer import StepTimer
from outrider_target.structure.masking import Masking
from outrider_target.verification import Verified, note_prompts, verify_step


@dataclass(frozen=True, slots=True)
class FailedSequence:
    """A sequence that cannot go on, and why."""

    sequence: Sequence
    error: OutriderError


@dataclass(frozen=True, slots=True)
class RoundResult:
    """What a round did: commitments to show to clients, and sequences that cannot go on."""

    commitments: tuple[Commitment, ...] = ()
    failed: tuple[FailedSequence, ...] = ()


class Round:
    """Runs rounds over the sequences of a scheduler.

    Args:
        scheduler: chooses rows; holds committed truth.
        forward: the target's forward pass.
        drafting: draft sessions of the sequences.
        control: how deep each row speculates.
        rule: by which their proposals are accepted.
        eos_token_ids: the model's end-of-sequence ids.
        clock: monotonic time.
        metrics: counters of this engine.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        forward: Forward,
        drafting: SequenceDrafting,
        control: DepthControl,
        rule: AcceptanceRule,
        eos_token_ids: Collection[int],
        clock: Clock,
        metrics: EngineMetrics,
    ) -> None:
        self._scheduler = scheduler
        self._forward = forward
        self._drafting = drafting
        self._control = control
        self._rule = rule
        self._eos_token_ids = frozenset(eos_token_ids)
        self._clock = clock
        self._metrics = metrics
        self._timer = StepTimer(clock)
        self._masking = Masking()

    def run(self) -> RoundResult:
        """One round over all rows that fit."""
        decision = self._control.decide(self._scheduler)
        rows = self._scheduler.plan(decision)
        if not rows:
            return RoundResult()
        step = Step(rows, self._propose(rows))
        masks = self._masking.start(step)
        with self._timer.measure(step.num_tokens):
            logits = split_logits(step, self._forward.run(ragged_batch(step)))
            step.masks = masks.result()
            verified = verify_step(step, logits, self._rule)
        note_prompts(step, logits)
        commitments = self._commit(step, verified)
        self._drafting.hand_on(commitments, decision)  # at once: drafting goes on while the slow work is done
        self._control.learn(step, commitments)
        self._metrics.observe_step(step, commitments, self._timer.last_s)
        failed = tuple(FailedSequence(rows[failure.row].sequence, failure.error) for failure in verified.failures)
        return RoundResult(commitments, failed)

    def _propose(self, rows: list[Row]) -> dict[int, Proposal]:
        """Usable proposals by sequence key. A row without one is a plain decode row."""
        for row in rows:
            row.sequence.statistics.note_scheduled(self._clock.now_s())
        self._drafting.open(rows, self._control.max_depth)
        collected = self._drafting.collect(rows, self._timer.expect_s(sum(row.chunk + row.depth for row in rows)))
        self._metrics.observe_wait(collected.waited_s)
        return collected.proposals

    def _commit(self, step: Step, verified: Verified) -> tuple[Commitment, ...]:
        """Append what is kept of every emission, count computed ids, and settle cache blocks."""
        commitments = []
        for emission in verified.emissions:
            sequence = step.rows[emission.row].sequence
            commitment = cut(sequence, emission, step.proposal(emission.row), self._eos_token_ids)
            sequence.commit(commitment.token_ids, self._clock.now_s())
            commitments.append(commitment)
        for row in step.rows:
            if not row.samples:
                row.sequence.computed_tokens += row.chunk
            self._scheduler.settle(row.sequence)
        return tuple(commitments)
