"""A user's proposer does its work, and whatever it does wrong stays with it and is named."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import numpy as np
import pytest
from outrider_doubles import bad_proposers
from outrider_doubles.draft_bench import FINGERPRINT, VOCAB_SIZE, Metrics, commit, opening
from outrider_doubles.scripted_proposer import WAIT_S

from outrider_draft import batcher as batcher_module
from outrider_draft.base_proposer import ProposerSetup
from outrider_draft.batcher import ProposerHangs
from outrider_draft.custom_proposer import CustomProposer
from outrider_draft.identity import WorkerIdentity
from outrider_draft.methods import make_proposer, parse_pool
from outrider_draft.proposer import Context, ProposalRequest, ProposedTokens
from outrider_draft.worker import DraftWorker, WorkerOvergrown, WorkerTools
from outrider_runtime.clock import ManualClock
from outrider_runtime.errors import InvalidConfig
from outrider_wire.channel import open_channel
from outrider_wire.draft_client import DraftStream, open_draft_stream
from outrider_wire.drafting import PROTOCOL_VERSION, Chain, Hello, VerifierRound

BAD = "outrider_doubles.bad_proposers"
IDENTITY = WorkerIdentity(FINGERPRINT, VOCAB_SIZE)
SETUP = ProposerSetup(VOCAB_SIZE, FINGERPRINT, {})
HELLO = Hello(PROTOCOL_VERSION, FINGERPRINT, VOCAB_SIZE, "verifier", lease_ms=30_000)


@asynccontextmanager
async def serving(name: str, tools: WorkerTools | None = None, **keys: object) -> AsyncIterator[DraftWorker]:
    """A worker with one of the bad proposers."""
    pool = {"name": "pool", "method": "custom_class", "model": f"{BAD}.{name}", "call_timeout_ms": 60_000, **keys}
    worker = DraftWorker(parse_pool(pool), IDENTITY, tools=tools)
    try:
        yield worker
    finally:
        await worker.stop(grace_s=0)


@asynccontextmanager
async def verifier(worker: DraftWorker) -> AsyncIterator[DraftStream]:
    channel = open_channel(await worker.start())
    stream = await open_draft_stream(channel, HELLO)
    yield stream
    await stream.close()
    await channel.close()


async def ask(stream: DraftStream, session: int, *ids: int) -> Chain:
    """Open a session with these ids and wait for two proposed ones."""
    wish = commit(session, len(ids), depth=2)
    await stream.send(VerifierRound(opens=(opening(session, ids),), commits=(wish,)))
    frame = await asyncio.wait_for(stream.receive(), WAIT_S)
    assert frame is not None and len(frame.chains) == 1
    return frame.chains[0]


@pytest.fixture
def sleep() -> Iterator[None]:
    bad_proposers.released.clear()
    yield
    bad_proposers.released.set()


async def test_a_users_proposer_drafts_in_the_worker() -> None:
    async with serving("RepeatsLast") as worker, verifier(worker) as stream:
        assert await ask(stream, 1, 5, 6) == Chain(1, 1, 2, (6, 6))
        assert worker.status().fault == ""
        assert worker.status().method == stream.worker.method == "custom_class"


@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        ({}, "ValueError", "thirteen"),
        ({"exit": True}, "SystemExit", "enough"),
        ({"cancel": True}, "CancelledError", "enough"),
        ({"interrupt": True}, "KeyboardInterrupt", "enough"),
    ],
)
async def test_one_that_raises_costs_its_session_the_proposal_and_is_named(
    options: dict[str, bool], kind: str, words: str
) -> None:
    async with serving("Raises", options=options) as worker, verifier(worker) as stream:
        assert (await ask(stream, 1, 13)).token_ids == ()
        assert (await ask(stream, 2, 7)).token_ids == (7, 7)
        worker.check()
        assert worker.status().fault == f"{kind}: {words} (errors so far: 1)"
        assert Metrics(worker.registry).value("proposer_errors_total", error=kind) == 1


@pytest.mark.parametrize(
    "answer",
    [
        None,
        7,
        "tokens",
        [],
        [None],
        [(1, 2)],
        [ProposedTokens((VOCAB_SIZE,))],
        [ProposedTokens((1, 2, 3))],
        [ProposedTokens((1.5, 2))],  # type: ignore[arg-type]
        [ProposedTokens("ab")],  # type: ignore[arg-type]
        [ProposedTokens((1,), ("sure",))],  # type: ignore[arg-type]
        [ProposedTokens((1,), (float("nan"),))],
        [ProposedTokens((10**40,))],
    ],
    ids=repr,
)
async def test_one_that_returns_nonsense_proposes_nothing_and_is_named(answer: object) -> None:
    async with serving("Returns", options={"answer": answer}) as worker, verifier(worker) as stream:
        assert (await ask(stream, 1, 5)).token_ids == ()
        assert "(errors so far: 1)" in worker.status().fault
        worker.check()


async def test_numpy_ids_and_confidences_are_taken_for_what_they_are() -> None:
    answer = [ProposedTokens(np.array([3, 4]), np.array([0.5, 0.25]))]  # type: ignore[arg-type]
    async with serving("Returns", options={"answer": answer}) as worker, verifier(worker) as stream:
        assert await ask(stream, 1, 5) == Chain(1, 1, 1, (3, 4), (0.5, 0.25))


@pytest.mark.usefixtures("sleep")
async def test_one_that_sleeps_is_answered_for_and_goes_on_when_it_wakes() -> None:
    async with serving("Sleeps", call_timeout_ms=20) as worker, verifier(worker) as stream:
        assert (await ask(stream, 1, 13)).token_ids == (), "answered while it sleeps"
        assert (await ask(stream, 2, 7)).token_ids == (), "and so is everybody else"
        assert worker.status().fault.startswith("Overdue: ")
        assert Metrics(worker.registry).value("proposer_errors_total", error="Overdue") == 1
        bad_proposers.released.set()
        async with asyncio.timeout(WAIT_S):
            session = 3
            while (await ask(stream, session, 7)).token_ids != (7, 7):
                session += 1
        worker.check()


@pytest.mark.usefixtures("sleep")
async def test_one_that_never_wakes_has_its_worker_replaced() -> None:
    clock = ManualClock()
    tools = WorkerTools(clock=clock)
    async with serving("Sleeps", tools, call_timeout_ms=20) as worker, verifier(worker) as stream:
        await ask(stream, 1, 13)
        worker.check()
        clock.advance(batcher_module.HANGING_S)
        for _ in range(3):
            with pytest.raises(ProposerHangs, match="30 s"):
                worker.check()
        hangs = "ProposerHangs: the proposer has not returned for 30 s (errors so far: 2)"
        assert worker.status().fault == hangs, "after one that was overdue"


async def test_one_that_leaks_has_its_worker_replaced_and_its_memory_exported() -> None:
    held = 1 << 27
    tools = WorkerTools(resident_bytes=lambda: held)
    async with serving("RepeatsLast", tools, max_resident_bytes="128MiB") as worker:
        worker.check()
        assert Metrics(worker.registry).value("resident_bytes") == held
        assert worker.status().fault == ""
        held += 1
        for _ in range(3):  # as often as Serve asks before it replaces a worker
            with pytest.raises(WorkerOvergrown, match="max_resident_bytes"):
                worker.check()
        assert worker.status().fault == (
            f"WorkerOvergrown: pool pool: {held} bytes resident, max_resident_bytes is {held - 1} (errors so far: 1)"
        )
        assert Metrics(worker.registry).value("proposer_errors_total", error="WorkerOvergrown") == 1


async def test_what_ends_a_worker_is_its_last_word_whatever_fails_while_it_drains() -> None:
    held = 1 << 28
    tools = WorkerTools(resident_bytes=lambda: held)
    async with serving("Raises", tools, max_resident_bytes="128MiB") as worker, verifier(worker) as stream:
        with pytest.raises(WorkerOvergrown):
            worker.check()
        await ask(stream, 1, 13)
        assert worker.status().fault.startswith("WorkerOvergrown: ")
        held = 0
        worker.check()
        assert worker.status().fault.startswith("ValueError"), "it lives on"


@pytest.mark.parametrize(
    ("keys", "limit"), [({}, 4 << 30), ({"max_resident_bytes": "64MiB"}, 1 << 26), ({"max_resident_bytes": None}, None)]
)
def test_code_of_users_is_held_to_a_limit_unless_that_is_turned_off(keys: dict[str, object], limit: int | None) -> None:
    pool = parse_pool({"name": "p", "method": "custom_class", "model": "a.B", **keys})
    assert pool.resident_limit_bytes == limit


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("no_such_package.Class", "ModuleNotFoundError"),
        (f"{BAD}.NoSuchClass", "AttributeError"),
        (f"{BAD}.not_a_class", "allowed: a class"),
        (f"{BAD}.CannotBeMade", "RuntimeError: no licence"),
        (f"{BAD}.ReportsNonsense", "state_bytes(1) is -1"),
        (f"{BAD}.NoProposer", "has no method warm_up, open, commit, propose, close, state_bytes"),
    ],
)
def test_a_class_that_is_of_no_use_is_refused_before_it_serves(path: str, words: str) -> None:
    with pytest.raises(InvalidConfig) as caught:
        make_proposer(parse_pool({"name": "p", "method": "custom_class", "model": path}), IDENTITY)
    assert path in str(caught.value) and words in str(caught.value)


@pytest.mark.parametrize(
    ("path", "is_told_how"), [("no_such_package.Class", True), (f"{BAD}.NoSuchClass", False)], ids=["missing", "other"]
)
def test_a_worker_without_its_class_names_the_pool_and_what_to_do_in_one_line(path: str, is_told_how: bool) -> None:
    pool = parse_pool({"name": "mine", "method": "custom_class", "model": path})
    with pytest.raises(InvalidConfig) as caught:
        DraftWorker(pool, IDENTITY)
    text = str(caught.value)
    assert text.startswith(f"pool mine: model: {path} cannot be imported: ") and "\n" not in text
    assert ("install it where workers run, or name its folder in the application's runtime_env" in text) is is_told_how


async def test_one_that_cannot_warm_up_never_serves() -> None:
    async with serving("CannotWarmUp") as worker:
        with pytest.raises(InvalidConfig, match=r"pool pool: .*no weights"):
            await worker.start()


@pytest.mark.parametrize(
    ("length", "size"), [(1, 5000), (3, 5000), (5001, 8192), (1 << 24, 1 << 24), (1 << 26, 1 << 26)]
)
def test_reported_memory_never_decreases_with_length(length: int, size: int) -> None:
    assert CustomProposer(f"{BAD}.ReportsLessForMore", SETUP).state_bytes(length) == size


def test_the_example_completes_phrases() -> None:
    options = {"phrases": [[5, 6, 7, 8], [6, 9]]}
    pool = {"name": "p", "method": "custom_class", "model": "custom_proposer.Dictionary", "options": options}
    proposer = make_proposer(parse_pool(pool), IDENTITY)
    contexts = [Context(1, np.array([1, 5, 6], np.int32)), Context(2, np.array([6], np.int32))]
    answers = proposer.propose([ProposalRequest(context, 1) for context in contexts])
    assert [answer.token_ids for answer in answers] == [(7,), (9,)]
