"""Real draft workers in processes of their own that stop, resume, die and come back while requests run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from outrider_doubles.draft_process import DraftProcess
from outrider_doubles.verifier import IDENTITY, Verifier

from outrider_target.drafting.settings import DraftingSettings

SETTINGS = DraftingSettings(draft_deadline_ms=50, reconnect_first_ms=10, reconnect_max_ms=50)
KEYS = range(1, 9)
PERIOD = 7


def draft_process(name: str, port: int = 0) -> DraftProcess:
    return DraftProcess(name, IDENTITY.tokenizer_fingerprint, IDENTITY.vocab_size, port)


@pytest.fixture
def verifier() -> Iterator[Verifier]:
    verifier = Verifier(SETTINGS, period=PERIOD)
    yield verifier
    assert verifier.engine.answers_are_right()
    verifier.close()


def running(verifier: Verifier, *processes: DraftProcess) -> None:
    """Requests run, and every process has had a proposal accepted."""
    verifier.knows(*(process.member() for process in processes))
    verifier.until_state(*(process.name for process in processes), state="ready")
    verifier.engine.start(*KEYS)
    for process in processes:
        verifier.until_accepted(process.name)


def test_a_real_worker_proposes_what_is_accepted(verifier: Verifier) -> None:
    with draft_process("a") as worker:
        running(verifier, worker)
        verifier.until_accepted("a", 200)
        assert verifier.dropped("malformed", "stale", "unknown_session") == 0


def test_a_stopped_worker_is_soon_not_waited_for_and_resumes_when_it_goes_on(verifier: Verifier) -> None:
    with draft_process("a") as worker:
        running(verifier, worker)
        worker.stop()
        verifier.engine.rounds_until(lambda: verifier.reason("a") == "misses deadlines")
        misses = verifier.counted("deadline_misses_total")
        for _ in range(20):
            verifier.engine.round()
        assert verifier.counted("deadline_misses_total") == misses
        worker.resume()
        verifier.until_accepted("a")


def test_sessions_of_a_stopped_worker_go_to_the_other_one(verifier: Verifier) -> None:
    with draft_process("a") as stopped, draft_process("b") as awake:
        running(verifier, stopped, awake)
        stopped.stop()
        verifier.engine.rounds_until(lambda: verifier.sessions("b") == len(KEYS))
        verifier.until_accepted("b", 200)


def test_sessions_of_a_killed_worker_go_to_the_other_one(verifier: Verifier) -> None:
    with draft_process("a") as killed, draft_process("b") as awake:
        running(verifier, killed, awake)
        killed.kill()
        verifier.engine.rounds_until(lambda: verifier.sessions("b") == len(KEYS))
        verifier.until_accepted("b", 200)


def test_when_every_worker_is_killed_rounds_go_on_alone_and_speculation_resumes_with_a_new_one(
    verifier: Verifier,
) -> None:
    with draft_process("a") as first:
        running(verifier, first)
        first.kill()
        verifier.engine.rounds_until(lambda: verifier.sessions("a") == 0)
        for _ in range(20):
            verifier.engine.round()
        with draft_process("b") as second:
            verifier.knows(second.member())
            verifier.until_accepted("b")


def test_a_worker_that_restarts_at_its_address_is_found_again(verifier: Verifier) -> None:
    with draft_process("a") as first:
        running(verifier, first)
        first.kill()
        verifier.until_state("a", state="backoff")
        with draft_process("a", port=first.port):
            verifier.until_accepted("a")
            assert verifier.counted("reconnects_total") >= 1
