"""A proposer that fails costs its own sessions their proposals, and nobody anything else."""

from __future__ import annotations

import logging
import math

import numpy as np
import pytest
from outrider_doubles.draft_bench import VOCAB_SIZE, Metrics
from outrider_doubles.scripted_proposer import ScriptedProposer, repeat_last
from prometheus_client import CollectorRegistry

from outrider_draft.changes import Ending
from outrider_draft.guarded_proposer import GuardedProposer
from outrider_draft.metrics import DraftMetrics
from outrider_draft.proposer import Context, ProposalRequest, ProposedTokens, SessionFacts
from outrider_wire.drafting import CloseOutcome


class Guarded:
    """A guarded scripted proposer with three sessions: 1, 2 and 3."""

    def __init__(self, proposer: ScriptedProposer) -> None:
        registry = CollectorRegistry()
        self.metrics = Metrics(registry)
        self.guard = GuardedProposer(proposer, VOCAB_SIZE, DraftMetrics(registry, "pool"))
        self.contexts = [Context(handle, np.array([handle], np.int32)) for handle in (1, 2, 3)]
        self.guard.open([SessionFacts(handle, 1, 8, 0, 0.0, 0, 1.0, "") for handle in (1, 2, 3)])
        self.guard.commit(self.contexts)

    def propose(self, depth: int = 2) -> list[ProposedTokens]:
        return self.guard.propose([ProposalRequest(context, depth) for context in self.contexts])


@pytest.mark.parametrize("call", ["open", "commit", "propose"])
def test_a_session_that_makes_the_proposer_fail_costs_no_other_its_proposal(
    call: str, caplog: pytest.LogCaptureFixture
) -> None:
    proposer = ScriptedProposer(fails=lambda name, handle: (name, handle) == (call, 2))
    with caplog.at_level(logging.ERROR):
        guarded = Guarded(proposer)
        proposals = guarded.propose()
    assert [proposal.token_ids for proposal in proposals] == [(1, 1), (), (3, 3)]
    assert guarded.metrics.value("proposer_errors_total", error="ScriptedFailure") >= 1
    assert len(caplog.records) == 1, "errors of one kind are logged once"


def test_a_session_whose_commit_failed_once_is_never_asked_about_again() -> None:
    failing = {("commit", 2)}
    proposer = ScriptedProposer(fails=lambda name, handle: (name, handle) in failing)
    guarded = Guarded(proposer)
    failing.clear()
    assert [proposal.token_ids for proposal in guarded.propose()] == [(1, 1), (), (3, 3)]
    assert proposer.batches == [[1, 3]]


class Unmeasurable(tuple):  # type: ignore[type-arg]
    """Ids that hide how many they are."""

    def __len__(self) -> int:
        return 0


@pytest.mark.parametrize(
    "answer",
    [
        ProposedTokens((1, 2, 3)),  # more than wanted
        ProposedTokens((VOCAB_SIZE,)),
        ProposedTokens((-1,)),
        ProposedTokens((1, 2), (0.5,)),  # one confidence for two ids
        ProposedTokens((1,), (math.nan,)),
        ProposedTokens((1,), (1.5,)),
        None,  # not a proposal at all
        ProposedTokens(Unmeasurable((1, 2, 3))),  # more than wanted, and says that it has none
    ],
)
def test_an_answer_that_the_protocol_forbids_becomes_empty(answer: ProposedTokens) -> None:
    def lie_about_2(request: ProposalRequest) -> ProposedTokens:
        return answer if request.context.handle == 2 else repeat_last(request)

    guarded = Guarded(ScriptedProposer(answer=lie_about_2))
    assert [proposal.token_ids for proposal in guarded.propose()] == [(1, 1), (), (3, 3)]


class Nameless(type):
    """A class of classes that have no name."""

    @property
    def __name__(cls) -> str:
        raise KeyboardInterrupt


def test_an_error_whose_class_has_no_name_is_contained_too() -> None:
    guarded = Guarded(ScriptedProposer())
    guarded.guard.note(Nameless("Gone", (Exception,), {})("all the same"))
    assert guarded.guard.fault == "an error without a name: all the same (errors so far: 1)"


class Untellable(Exception):
    """Has no text."""

    def __str__(self) -> str:
        raise SystemExit("not even a text")


@pytest.mark.parametrize(
    ("error", "fault"),
    [
        (Untellable(), "Untellable: (no text: SystemExit while making it)"),
        (ValueError("half \ud800 of it"), "ValueError: half \\ud800 of it"),
        (
            ValueError("\x1b[31mred\nand long"),
            "ValueError: \\u001b[31mred\\u000aand long",
        ),
        (type("Long" * 50, (Exception,), {})("x"), f"{('Long' * 50)[:64]}: x"),
    ],
    ids=["no text", "a text that is no UTF-8", "a text for a terminal", "a long name"],
)
def test_an_error_that_cannot_be_told_as_it_is_is_told_and_counted(error: Exception, fault: str) -> None:
    guarded = Guarded(ScriptedProposer())
    guarded.guard.note(error)
    assert guarded.guard.fault == f"{fault} (errors so far: 1)"
    guarded.guard.fault.encode("utf-8")
    assert guarded.metrics.value("proposer_errors_total", error=fault.partition(":")[0]) == 1


def test_a_wrong_number_of_answers_is_an_error() -> None:
    class Short(ScriptedProposer):
        def propose(self, batch: object) -> list[ProposedTokens]:
            return []

    guarded = Guarded(Short())
    assert guarded.propose() == [ProposedTokens()] * 3
    assert guarded.metrics.value("proposer_errors_total", error="MalformedAnswer") == 4


def test_a_close_that_fails_keeps_no_other_session_open() -> None:
    proposer = ScriptedProposer(fails=lambda name, handle: (name, handle) == ("close", 2))
    guarded = Guarded(proposer)
    guarded.guard.close([Ending(handle, CloseOutcome.FINISHED) for handle in (1, 2, 3)])
    assert proposer.closed == [(1, CloseOutcome.FINISHED), (3, CloseOutcome.FINISHED)]
