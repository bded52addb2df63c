"""The real engine and real links, over real gRPC: whatever draft workers do, every answer is what the law says."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from random import Random

import pytest
from outrider_doubles import lies
from outrider_doubles.chaos_engine import DEPTH, ChaosEngine, wait_until
from outrider_doubles.chaos_lies import HARMLESS, SHOWN_BY, lie_named
from outrider_doubles.chaos_questions import Oracle
from outrider_doubles.hostile_drafter import DrafterFacts, HostileDrafter
from outrider_doubles.lies import Lie

from outrider_target.drafting.settings import DraftingSettings
from outrider_wire.registry import MemberState

VOCAB_SIZE = 1000
"""The one that the lies reckon with."""
PATIENT = DraftingSettings(
    draft_deadline_ms=50,
    reconnect_first_ms=1,
    reconnect_max_ms=20,
    quarantine_first_ms=60_000,
    refusal_retry_ms=20,
    unsolicited_rows=256,
)
FORGIVING = PATIENT.model_copy(update={"quarantine_first_ms": 5, "quarantine_max_ms": 50, "probe_ms": 20})


@pytest.fixture
def engine(request: pytest.FixtureRequest) -> Iterator[ChaosEngine]:
    engine = ChaosEngine(getattr(request, "param", PATIENT), VOCAB_SIZE, seed=1)
    yield engine
    engine.stop()


def drafter(name: str, pool: str = "pool", lie: Lie = lies.honest) -> HostileDrafter:
    return HostileDrafter(lie, DrafterFacts(name, pool), Oracle(VOCAB_SIZE))


def end(engine: ChaosEngine, *workers: HostileDrafter) -> None:
    """Everything ends, also at the workers, and nobody has seen the verifier break a rule."""
    engine.rounds_until(lambda: engine.cancelled > 0 and engine.answered > 0)
    engine.finish()
    wait_until(lambda: all(worker.session_count == 0 for worker in workers))
    assert [slip for worker in workers for slip in worker.slips] == []


def test_runs_of_every_accepted_length_occur_under_preemption_and_give_the_law(engine: ChaosEngine) -> None:
    with drafter("a") as a, drafter("b") as b:
        engine.knows(a.member(), b.member())
        engine.rounds_until(lambda: engine.accepted_runs == set(range(DEPTH + 1)) and engine.preemptions() > 5)
        engine.rounds_until(lambda: engine.cancelled > 3)
        end(engine, a, b)


@pytest.mark.parametrize(
    ("name", "pool"),
    # Nobody waits for a silent pool beside one that answers.
    [(name, pool) for name in SHOWN_BY for pool in ("pool", "other") if (name, pool) != ("silent", "other")],
)
def test_a_lie_is_counted_and_changes_no_answer(engine: ChaosEngine, name: str, pool: str) -> None:
    with drafter("liar", pool, lie_named(name)) as liar, drafter("saint") as saint:
        engine.knows(liar.member(), saint.member())
        engine.rounds_until(lambda: engine.counted(*SHOWN_BY[name]) > 0)
        engine.until_accepted()
        engine.rounds_until(lambda: engine.preemptions() > 0)
        end(engine, saint)
        assert liar.slips == []


def test_wrong_ids_are_verified_and_never_accepted(engine: ChaosEngine) -> None:
    with drafter("liar", "other", lies.wrong_ids) as liar, drafter("saint") as saint:
        engine.knows(liar.member())  # alone: beside a right proposal, a wrong one is never the one verified
        engine.rounds_until(lambda: engine.drafted("other") > 50)
        engine.knows(liar.member(), saint.member())
        engine.until_accepted()
        assert engine.accepted("other") == 0
        end(engine, liar, saint)


def test_a_worker_that_stops_listening_holds_up_nobody_and_is_useful_again_when_it_listens(engine: ChaosEngine) -> None:
    held = lies.Held()
    held.released.set()
    with drafter("deaf", "other", held) as deaf, drafter("saint") as saint:
        engine.knows(deaf.member())
        engine.rounds_until(lambda: engine.accepted("other") > 0)
        engine.knows(deaf.member(), saint.member())
        held.released.clear()
        engine.until_accepted(500)
        held.released.set()
        leaving = replace(saint.member(), state=MemberState.DRAINING)  # one that only vanished would keep its link
        engine.knows(deaf.member(), leaving)
        accepted = engine.accepted("other")
        engine.rounds_until(lambda: engine.accepted("other") > accepted + 50)
        end(engine, deaf, saint)


def test_every_lie_is_tried() -> None:
    tried = {name.replace(" ", "_") for name in (*SHOWN_BY, *HARMLESS)}
    told = {name for name, thing in vars(lies).items() if callable(thing) and name[0].islower()}
    assert told - {"changed", "dataclass", "field", "replace"} <= tried


@pytest.mark.parametrize("engine", [FORGIVING], indirect=True)
@pytest.mark.parametrize("seed", range(3))
def test_workers_that_change_their_ways_at_random_rounds_change_no_answer(engine: ChaosEngine, seed: int) -> None:
    random, names = Random(seed), [*SHOWN_BY, *HARMLESS]
    with ExitStack() as stack:
        workers = [stack.enter_context(drafter(f"{pool}{n}", pool)) for n in range(2) for pool in ("pool", "other")]
        for _ in range(40):
            random.choice(workers).lie = lie_named(random.choice(names))
            engine.knows(*(worker.member() for worker in workers if random.random() < 0.9))
            engine.rounds(random.randrange(8))
        for worker in workers:
            worker.lie = lies.honest
        engine.knows(*(worker.member() for worker in workers))
        engine.until_accepted()
        assert engine.counted("quarantines") > 0 and engine.counted("dropped_proposals") > 0
        assert engine.preemptions() > 0
        end(engine, *workers)
