"""Real draft workers in processes of their own that stop, resume, die and come back while requests run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from random import Random

import pytest
from outrider_doubles.draft_process import DraftProcess
from outrider_doubles.verifier import IDENTITY, Verifier

from outrider_target.drafting.settings import DraftingSettings

SETTINGS = DraftingSettings(draft_deadline_ms=300, reconnect_first_ms=10, reconnect_max_ms=50)
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
        verifier.until_drafting(process.name)


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
        verifier.engine.rounds_until(lambda: verifier.sessions("b") == len(verifier.engine.ids))
        verifier.until_accepted("b", 200)


def test_sessions_of_a_killed_worker_go_to_the_other_one(verifier: Verifier) -> None:
    with draft_process("a") as killed, draft_process("b") as awake:
        running(verifier, killed, awake)
        killed.kill()
        verifier.engine.rounds_until(lambda: verifier.sessions("b") == len(verifier.engine.ids))
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


def test_a_worker_that_is_stopped_for_long_loses_its_link_and_is_found_again(verifier: Verifier) -> None:
    with draft_process("a") as worker:
        running(verifier, worker)
        worker.stop()
        verifier.until_state("a", state="backoff")  # keepalive noticed
        worker.resume()
        verifier.until_accepted("a")


@pytest.mark.parametrize("seed", range(3))
def test_whatever_happens_to_workers_answers_stay_right_and_speculation_resumes(verifier: Verifier, seed: int) -> None:
    random = Random(seed)
    with ExitStack() as stack:
        workers = [stack.enter_context(draft_process(f"first{index}")) for index in range(2)]
        running(verifier, *workers)
        for event in range(6):
            index = random.randrange(2)
            match random.choice(["stop", "resume", "kill"]):
                case "stop":
                    workers[index].stop()
                case "resume":
                    workers[index].resume()
                case "kill":
                    workers[index].kill()
                    workers[index] = stack.enter_context(draft_process(f"later{event}"))
                    verifier.knows(*(worker.member() for worker in workers))
            for _ in range(random.randrange(30)):
                verifier.engine.round()
        for worker in workers:
            worker.resume()
        before = verifier.engine.accepted.total()
        verifier.engine.rounds_until(lambda: verifier.engine.accepted.total() > before + 100)
