"""Drafting as sequences need it: sessions opened once, proposals asked for, commitments handed on, sessions closed."""

from __future__ import annotations

from collections.abc import Sequence as SequenceOf
from dataclasses import replace

from outrider_target.acceptance_rule import AcceptanceRule
from outrider_target.commitment import Commitment
from outrider_target.control.views import Decision
from outrider_target.drafting.speculator import (
    Ask,
    Collected,
    CommittedRow,
    SessionSpec,
    Speculator,
    Verdict,
)
from outrider_target.scheduler import Row
from outrider_target.sequence import Sequence
from outrider_target.structure.proposals import within_forms
from outrider_wire.drafting import CloseOutcome
from outrider_wire.seeds import draft_seed


class SequenceDrafting:
    """Keeps the draft sessions of all sequences in step with what is committed.

    Every session gets every commitment, also while no proposal is wanted, so that its state never goes stale.
    """

    def __init__(self, speculator: Speculator, rule: AcceptanceRule) -> None:
        self._speculator = speculator
        self._rule = rule

    def open(self, rows: SequenceOf[Row], max_depth: int) -> None:
        """Open sessions for sequences that may ever speculate and have none."""
        for row in rows:
            sequence = row.sequence
            if not sequence.session_open and sequence.depth_limit(max_depth) > 0:
                sequence.session_open = True
                self._speculator.open(_session_spec(sequence, max_depth, self._rule))

    def collect(self, rows: SequenceOf[Row], step_time_s: float) -> Collected:
        """The best usable proposal of every row that has a depth; waits only as long as that pays.

        What a prescribed form does not let come is cut off, so that a proposal without anything else counts as none.
        """
        asks = [Ask(row.sequence.key, row.sequence.length, row.depth) for row in rows if row.depth]
        if not asks:
            return Collected()
        collected = self._speculator.collect(asks, step_time_s)
        collected = replace(collected, proposals=within_forms(rows, collected.proposals))
        for row in rows:
            if row.depth:
                met = row.sequence.key in collected.proposals
                row.sequence.statistics.note_wish(met, collected.waited_s)
        return collected

    def hand_on(self, commitments: SequenceOf[Commitment], decision: Decision) -> None:
        """Send what a round committed to the draft workers, with each sequence's next depth and how proposals fared."""
        committed: list[CommittedRow] = []
        verdicts: list[Verdict] = []
        for commitment in commitments:
            sequence = commitment.sequence
            if commitment.verdict is not None:
                verdict = commitment.verdict
                sequence.statistics.note_round(verdict.pool, verdict.proposed, verdict.accepted)
                verdicts.append(verdict)
            if sequence.session_open:
                wanted = 0 if commitment.end else sequence.depth_limit(decision.next_depth(sequence.key))
                sequence.asked_depth = wanted
                committed.append(
                    CommittedRow(
                        key=sequence.key,
                        base_length=sequence.length - len(commitment.token_ids),
                        delta=commitment.token_ids,
                        next_depth=wanted,
                    )
                )
        if committed:
            self._speculator.commit(committed)
        if verdicts:
            self._speculator.judge(verdicts)

    def close(self, sequence: Sequence, outcome: CloseOutcome) -> None:
        """Free the sessions of a sequence, if it has any."""
        if sequence.session_open:
            sequence.session_open = False
            sequence.asked_depth = 0
            self._speculator.close(sequence.key, outcome)


def _session_spec(sequence: Sequence, max_depth: int, rule: AcceptanceRule) -> SessionSpec:
    options = sequence.request.speculation
    seed = sequence.seed if rule.shares_noise else draft_seed(sequence.seed)  # a request without one was given one
    return SessionSpec(
        key=sequence.key,
        token_ids=tuple(sequence.token_ids),
        prompt_length=sequence.prompt_length,
        sampling=replace(sequence.sampling, seed=seed),
        depth_cap=max_depth if options.max_depth is None else min(max_depth, options.max_depth),
        pool=options.pool,
        tenant=sequence.request.tenant,
        shares_noise=rule.shares_noise,
        wants_draft_laws=rule.wants_draft_laws,
    )
