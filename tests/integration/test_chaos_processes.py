"""The real engine with real draft workers in processes of their own that stop, resume and die at random rounds."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from random import Random

import pytest
from outrider_doubles import lies
from outrider_doubles.chaos_engine import FINGERPRINT, ChaosEngine, wait_until
from outrider_doubles.chaos_probe import sessions_held
from outrider_doubles.draft_process import DraftProcess
from outrider_doubles.hostile_drafter import DrafterFacts, HostileDrafter
from outrider_doubles.racing_pools import POOL_NAMES, racing_pools

from outrider_target.drafting.settings import DraftingSettings

VOCAB_SIZE = 4
"""So few that what followed before is often what follows again."""
MAX_SESSIONS = 1024
SETTINGS = DraftingSettings(
    draft_deadline_ms=50,
    reconnect_first_ms=5,
    reconnect_max_ms=50,
    lease_ms=1_000,
    quarantine_first_ms=5,
    quarantine_max_ms=50,
    probe_ms=50,
    drafting_price=0,
)
"""All pools race: none is spared for what it costs."""
POOLS = {pool["name"]: pool for pool in racing_pools([[0, 1, 2, 3, 0, 1, 2, 3]])}


def draft_process(name: str, pool: str) -> DraftProcess:
    return DraftProcess(name, FINGERPRINT, VOCAB_SIZE, pool=POOLS[pool])


def until_empty(*workers: DraftProcess) -> None:
    """Closes and leases have freed all sessions of these workers."""
    wait_until(lambda: not any(sessions_of(worker) for worker in workers))


def sessions_of(worker: DraftProcess) -> int:
    return asyncio.run(sessions_held(worker.address, FINGERPRINT, VOCAB_SIZE, MAX_SESSIONS))


def until_accepted_of_each_pool(engine: ChaosEngine) -> None:
    """Proposals of every pool have come true since."""
    before = {pool: engine.accepted(pool) for pool in POOL_NAMES}
    engine.rounds_until(lambda: all(engine.accepted(pool) > before[pool] + 60 for pool in POOL_NAMES))


def test_real_workers_of_every_pool_draft_for_greedy_and_sampled_requests_without_changing_them() -> None:
    engine = ChaosEngine(SETTINGS, VOCAB_SIZE, seed=0, pools=POOL_NAMES)
    with ExitStack() as stack:
        workers = [stack.enter_context(draft_process(pool, pool)) for pool in POOL_NAMES]
        engine.knows(*(worker.member() for worker in workers))
        until_accepted_of_each_pool(engine)
        engine.rounds_until(lambda: engine.preemptions() > 5 and engine.cancelled > 3)
        engine.finish()
        until_empty(*workers)
        engine.stop()


@pytest.mark.parametrize("seed", range(3))
def test_stops_and_kills_at_random_rounds_change_no_answer_and_leave_nothing_behind(seed: int) -> None:
    random, engine = Random(seed), ChaosEngine(SETTINGS, VOCAB_SIZE, seed, POOL_NAMES)
    crowded = POOL_NAMES[seed]
    pools = (*POOL_NAMES, crowded)
    with ExitStack() as stack:
        workers = [stack.enter_context(draft_process(f"first{n}", pool)) for n, pool in enumerate(pools)]
        facts = DrafterFacts("liar", crowded, vocab_size=VOCAB_SIZE)
        liar = stack.enter_context(HostileDrafter(lies.negative_ids, facts))
        for event in range(16):
            engine.knows(liar.member(), *(worker.member() for worker in workers))
            victim = random.randrange(len(pools))
            match random.choice(["stop", "stop", "resume", "kill"]):
                case "stop":
                    workers[victim].stop()
                case "resume":
                    workers[victim].resume()
                case "kill":
                    workers[victim].kill()
                    workers[victim] = stack.enter_context(draft_process(f"later{event}", pools[victim]))
            engine.rounds(random.randrange(60))
        for worker in workers:
            worker.resume()
        engine.knows(*(worker.member() for worker in workers))
        until_accepted_of_each_pool(engine)
        assert engine.counted("failovers") > 0 and engine.preemptions() > 0 and engine.cancelled > 0
        engine.finish()
        until_empty(*workers)
        engine.stop()
