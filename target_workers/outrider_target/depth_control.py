"""Between the engine and a depth policy: what the policy sees of sequences, and what it learns from rounds.

Decided once a round on the engine's thread of rank 0; other ranks get the step that comes of it and decide nothing.
"""

from __future__ import annotations

from collections.abc import Sequence as SequenceOf

from outrider_target.batch import Step
from outrider_target.commitment import Commitment
from outrider_target.control.acceptance_model import UNREAD_CURVE, AcceptanceModel, DraftOutcome
from outrider_target.control.cost_model import StepLoad
from outrider_target.control.depth_policy import DepthPolicy
from outrider_target.control.goodput import GoodputMeter
from outrider_target.control.latency_objectives import NO_OBJECTIVES, LatencyObjectives
from outrider_target.control.pace import Pace
from outrider_target.control.views import Decision, RowView, StepView
from outrider_target.scheduler import Scheduler
from outrider_target.sequence import Sequence


class DepthControl:
    """Asks a policy for the depths of each round and tells it how the round went.

    Args:
        policy: decides.
        objectives: time per token that requests should see at most.
    """

    def __init__(self, policy: DepthPolicy, objectives: LatencyObjectives = NO_OBJECTIVES) -> None:
        self._acceptance = AcceptanceModel(max(1, policy.max_depth))
        self.last = policy.decide(StepView(()))
        """The decision for the last round."""
        self.goodput = GoodputMeter()
        self.pace = Pace()
        self._policy = policy
        self._objectives = objectives
        self._load: StepLoad | None = None
        self._has_drafts = False
        self._committed = 0
        self._committing_rows = 0

    @property
    def max_depth(self) -> int:
        """No row is ever deeper."""
        return self._policy.max_depth

    def decide(self, scheduler: Scheduler) -> Decision:
        """Depths for the coming round."""
        room = scheduler.draft_room(self.max_depth)
        rows = tuple(self._row(sequence, room.by_key[sequence.key]) for sequence in scheduler.decoding)
        self.last = self._policy.decide(StepView(rows, room.step_tokens))
        return self.last

    def rest(self) -> None:
        """There is nothing to decide for; what was decided last holds for nobody any more."""
        self.last = self._policy.decide(StepView(()))

    def learn(self, step: Step, commitments: SequenceOf[Commitment]) -> None:
        """See what a step did: how its proposals fared, and what it cost if it was a step of decode rows alone."""
        if self._policy.reads_curves:
            self._learn_acceptance(step, commitments)
        self._has_drafts = any(row.depth for row in step.rows)
        self._committed = sum(len(commitment.token_ids) for commitment in commitments)
        self._committing_rows = len(commitments)
        decodes_only = all(row.samples and row.chunk == 1 for row in step.rows)
        context = sum(row.sequence.length for row in step.rows)
        self._load = StepLoad(len(step.rows), step.num_tokens, context) if decodes_only else None

    def _learn_acceptance(self, step: Step, commitments: SequenceOf[Commitment]) -> None:
        by_key = {commitment.sequence.key: commitment for commitment in commitments}
        for index, row in enumerate(step.rows):
            commitment = by_key.get(row.sequence.key)
            if row.depth and commitment is not None:
                self._acceptance.observe(_outcome(row.depth, len(step.proposed(index)), commitment))
        self._acceptance.end_round()

    def end_round(self, round_s: float) -> None:
        """The round that was learned from took `round_s` seconds, all work of the engine included."""
        self.goodput.observe(self._committed, round_s)
        self.pace.observe(self._committing_rows, self._committed, round_s)
        if self._load is not None and round_s > 0:
            self._policy.observe(self._load, round_s, self._has_drafts)
        self._load, self._committed, self._committing_rows = None, 0, 0

    def forget(self, sequence: Sequence) -> None:
        """A sequence ended."""
        self._acceptance.forget(sequence.key)

    def _row(self, sequence: Sequence, room_tokens: int) -> RowView:
        return RowView(
            key=sequence.key,
            limit=sequence.depth_limit(self.max_depth),
            curve=self._acceptance.session_curve(sequence.key) if self._policy.reads_curves else UNREAD_CURVE,
            context=sequence.length,
            objective_s=self._objectives.of(sequence.request.speculation.latency_class),
            room_tokens=room_tokens,
        )


def _outcome(asked: int, proposed: int, commitment: Commitment) -> DraftOutcome:
    verdict = commitment.verdict
    if verdict is None:
        return DraftOutcome(commitment.sequence.key, asked)
    if commitment.end is not None:  # what stands after the end of an answer was cut, neither refused nor missing
        return DraftOutcome(commitment.sequence.key, verdict.accepted, verdict.accepted, verdict.accepted)
    return DraftOutcome(commitment.sequence.key, asked, proposed, verdict.accepted)
