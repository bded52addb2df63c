"""Random lives of requests and workers: opens, commits, rewinds, lost links, refusals, resyncs and lost answers.

Whatever the order, every worker is told exactly the committed ids, in a legal order, and nothing is left at the end.
"""

from __future__ import annotations

from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from outrider_doubles.strict_worker import StrictWorker
from prometheus_client import CollectorRegistry

from outrider_runtime.clock import ManualClock
from outrider_target.drafting.inbox import continuation
from outrider_target.drafting.linked_worker import LinkedWorker
from outrider_target.drafting.locked_book import LockedBook
from outrider_target.drafting.metrics import DraftingMetrics
from outrider_target.drafting.settings import DraftingSettings
from outrider_target.drafting.speculator import Ask, CommittedRow, SessionSpec
from outrider_wire.drafting import Chain, CloseOutcome, DrafterRound, Load, Refusal, ResyncRequest
from outrider_wire.sampling import SamplingParams

NAMES = ("a0", "a1", "b0")
DEPTH_CAP = 4
ids = st.lists(st.integers(0, 999), max_size=40)


class SessionMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.clock = ManualClock()
        self.settings = DraftingSettings(max_frame_bytes=1024, resyncs_per_session=1000)
        self.book = LockedBook(self.settings, 1000, self.clock, DraftingMetrics(CollectorRegistry()))
        self.workers = {name: LinkedWorker(name, name[0], 64, self.settings, self.clock) for name in NAMES}
        self.remote: dict[str, StrictWorker] = {}
        self.truth: dict[int, list[int]] = {}
        self.chains: list[tuple[str, Chain]] = []
        self.next_key = 0

    @rule(prompt=st.lists(st.integers(0, 999), min_size=1, max_size=500), pool=st.sampled_from([None, "a", "b"]))
    def open(self, prompt: list[int], pool: str | None) -> None:
        key, self.next_key = self.next_key, self.next_key + 1
        self.truth[key] = list(prompt)
        self.book.open(SessionSpec(key, tuple(prompt), len(prompt), SamplingParams(), DEPTH_CAP, pool))

    @precondition(lambda self: self.truth)
    @rule(data=st.data(), delta=ids, depth=st.integers(0, 6))
    def commit(self, data: st.DataObject, delta: list[int], depth: int) -> None:
        key = data.draw(st.sampled_from(sorted(self.truth)))
        known = self.truth[key]
        self.book.commit([CommittedRow(key, len(known), tuple(delta), depth)])
        known.extend(delta)

    @precondition(lambda self: self.truth)
    @rule(data=st.data())
    def rewind(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.truth)))
        base = data.draw(st.integers(1, len(self.truth[key])))
        self.book.commit([CommittedRow(key, base, (7,), 2)])
        self.truth[key] = [*self.truth[key][:base], 7]

    @precondition(lambda self: self.truth)
    @rule(data=st.data(), outcome=st.sampled_from(CloseOutcome))
    def close(self, data: st.DataObject, outcome: CloseOutcome) -> None:
        key = data.draw(st.sampled_from(sorted(self.truth)))
        del self.truth[key]
        self.book.close(key, outcome)

    @rule(name=st.sampled_from(NAMES))
    def connect(self, name: str) -> None:
        if name not in self.remote:
            self.remote[name] = StrictWorker()
            self.book.connect(self.workers[name])

    @precondition(lambda self: self.remote)
    @rule(data=st.data())
    def lose(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.remote)))
        del self.remote[name]
        self.book.disconnect(self.workers[name])

    @precondition(lambda self: self.remote)
    @rule(data=st.data())
    def send_a_frame(self, data: st.DataObject) -> None:
        self.take_one(data.draw(st.sampled_from(sorted(self.remote))))

    @precondition(lambda self: self.chains)
    @rule(data=st.data(), keep=st.booleans())
    def deliver(self, data: st.DataObject, keep: bool) -> None:
        index = data.draw(st.integers(0, len(self.chains) - 1))
        name, chain = self.chains[index] if keep else self.chains.pop(index)
        if name in self.remote:
            self.book.receive(self.workers[name], DrafterRound((chain,), load=Load(0, 3, 10)))

    @precondition(lambda self: any(worker.sessions for worker in self.remote.values()))
    @rule(data=st.data(), refuse=st.booleans())
    def complain(self, data: st.DataObject, refuse: bool) -> None:
        name = data.draw(st.sampled_from(sorted(n for n, worker in self.remote.items() if worker.sessions)))
        number = data.draw(st.sampled_from(sorted(self.remote[name].sessions)))
        epoch = self.remote[name].sessions[number].epoch
        if refuse:
            frame = DrafterRound(refusals=(Refusal(number, epoch),))
        else:
            frame = DrafterRound(resyncs=(ResyncRequest(number, epoch, 0),))
        self.book.receive(self.workers[name], frame)

    @rule(seconds=st.floats(0, 2))
    def wait(self, seconds: float) -> None:
        self.clock.advance(seconds)

    @precondition(lambda self: self.truth)
    @rule(data=st.data(), depth=st.integers(1, 6))
    def collect(self, data: st.DataObject, depth: int) -> None:
        key = data.draw(st.sampled_from(sorted(self.truth)))
        self.break_all_circuits()
        known = self.truth[key]
        proposal = self.book.collect([Ask(key, len(known), depth)], 0.01).proposals.get(key)
        if proposal is not None:
            assert 0 < len(proposal.token_ids) <= min(depth, DEPTH_CAP)
            honest = {continuation(known, len(known), chain)[:depth] for _, chain in self.everything_said()}
            assert proposal.token_ids in honest

    @invariant()
    def sessions_are_counted(self) -> None:
        assert self.book.session_count() == len(self.truth)

    def teardown(self) -> None:
        for name in self.remote:
            while self.take_one(name):
                pass
        told = [list(s.ids) for worker in self.remote.values() for s in worker.sessions.values()]
        assert all(ids in self.truth.values() for ids in told)
        for key in list(self.truth):
            self.book.close(key, CloseOutcome.FINISHED)
        for name, worker in self.remote.items():
            while self.take_one(name):
                pass
            assert not worker.sessions
        assert self.book.session_count() == 0
        assert not any(self.book.sessions_on(worker) for worker in self.workers.values())

    def take_one(self, name: str) -> bool:
        frame = self.book.next_frame(self.workers[name])
        if frame is None:
            return False
        self.chains += [(name, chain) for chain in self.remote[name].apply(frame).chains]
        self.said = [*self.everything_said(), *self.chains]
        return True

    def everything_said(self) -> list[tuple[str, Chain]]:
        return getattr(self, "said", [])

    def break_all_circuits(self) -> None:
        for worker in self.workers.values():
            for _ in range(self.settings.breaker_misses):
                worker.breaker.miss()


SessionMachine.TestCase.settings = hypothesis_settings(max_examples=60, stateful_step_count=40)
test_random_lives_keep_workers_in_step_and_leave_nothing_behind = SessionMachine.TestCase
