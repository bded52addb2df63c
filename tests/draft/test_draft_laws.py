"""Laws on their way through a draft worker: asked for by the verifier, sent over real gRPC, checked, or left out."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import numpy as np
import pytest
from outrider_doubles.draft_bench import FINGERPRINT, VOCAB_SIZE, Metrics, SessionBench, commit, opening
from outrider_doubles.scripted_proposer import WAIT_S
from prometheus_client import CollectorRegistry

from outrider_draft.base_proposer import BaseProposer, ProposerSetup
from outrider_draft.guarded_proposer import GuardedProposer
from outrider_draft.identity import WorkerIdentity
from outrider_draft.methods import parse_pool
from outrider_draft.metrics import DraftMetrics
from outrider_draft.proposer import Context, ProposalRequest, ProposedTokens
from outrider_draft.worker import DraftWorker
from outrider_wire.channel import open_channel
from outrider_wire.draft_client import open_draft_stream
from outrider_wire.draft_law import DraftLaw
from outrider_wire.drafting import PROTOCOL_VERSION, Hello, VerifierRound

LAW = DraftLaw((4, 6), (3, 1))
POOL = {
    "name": "pool",
    "method": "custom_class",
    "model": "outrider_doubles.drawing_proposer.DrawingProposer",
    "options": {"weights": {"4": 3, "6": 1}},
}


class Says(BaseProposer):
    """Says the same always."""

    def __init__(self, answer: ProposedTokens) -> None:
        super().__init__(ProposerSetup(VOCAB_SIZE, FINGERPRINT))
        self._answer = answer

    def propose(self, batch: list[ProposalRequest]) -> list[ProposedTokens]:  # type: ignore[override]
        return [self._answer for _ in batch]


def guarded(answer: ProposedTokens, wants_laws: bool) -> tuple[ProposedTokens, str]:
    guard = GuardedProposer(Says(answer), VOCAB_SIZE, DraftMetrics(CollectorRegistry(), "pool"))
    (found,) = guard.propose([ProposalRequest(Context(1, np.array([1], np.int32)), 2, wants_laws)])
    return found, guard.fault


def test_laws_pass_where_they_are_wanted_and_are_left_out_elsewhere() -> None:
    answer = ProposedTokens((4, 5), (), (LAW, DraftLaw()))
    assert guarded(answer, wants_laws=True) == (answer, "")
    assert guarded(answer, wants_laws=False) == (ProposedTokens((4, 5)), "")


@pytest.mark.parametrize(
    "laws",
    [(LAW,), (LAW, LAW), (LAW, DraftLaw((5, VOCAB_SIZE), (1, 1)))],
    ids=["too few", "not its own", "out of range"],
)
def test_laws_that_do_not_fit_are_the_proposers_fault(laws: tuple[DraftLaw, ...]) -> None:
    found, fault = guarded(ProposedTokens((4, 5), (), laws), wants_laws=True)
    assert found == ProposedTokens() and fault.startswith("MalformedAnswer")


@pytest.mark.parametrize("wants_laws", [False, True])
def test_proposers_hear_what_a_session_was_opened_with(wants_laws: bool) -> None:
    bench = SessionBench()
    opened = replace(opening(1, [1, 2]), shares_noise=True, wants_draft_laws=wants_laws)
    changes = bench.send(opened, commit(1, 2, depth=3))
    assert changes.opened[0].shares_noise
    assert changes.wishes[0].request.wants_draft_laws is wants_laws


async def test_a_drawing_proposer_sends_its_laws_over_the_wire_to_those_who_want_them() -> None:
    worker = DraftWorker(parse_pool(POOL), WorkerIdentity(FINGERPRINT, VOCAB_SIZE))
    channel = open_channel(await worker.start())
    hello = Hello(PROTOCOL_VERSION, FINGERPRINT, VOCAB_SIZE, "verifier", lease_ms=30_000)
    stream = await open_draft_stream(channel, hello)
    try:
        for session, wants_laws in ((1, True), (2, False)):
            opened = replace(opening(session, [1, 2]), wants_draft_laws=wants_laws)
            await stream.send(VerifierRound(opens=(opened,), commits=(commit(session, 2, depth=2),)))
            frame = await asyncio.wait_for(stream.receive(), WAIT_S)
            assert frame is not None
            (chain,) = frame.chains
            assert set(chain.token_ids) <= {4, 6} and len(chain.token_ids) == 2
            assert chain.draft_laws == ((LAW, LAW) if wants_laws else ())
        assert Metrics(worker.registry).value("proposer_errors_total", error="MalformedAnswer") == 0
    finally:
        await stream.close()
        await channel.close()
        await worker.stop(grace_s=0)
