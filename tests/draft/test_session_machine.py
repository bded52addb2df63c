"""Whatever verifiers send, in any order: nothing raises, answers make sense, and nothing is left at the end."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from outrider_doubles.draft_bench import LESSEE, VOCAB_SIZE, SessionBench, close, commit, opening

from outrider_draft.changes import Changes
from outrider_draft.session_rules import Lessee
from outrider_wire.drafting import Commit, Open

VERIFIERS = (LESSEE, Lessee("other", 5.0))
_verifier = st.sampled_from(VERIFIERS)
_session = st.integers(0, 4)
_epoch = st.integers(0, 4)
_ids = st.lists(st.one_of(st.integers(0, 3), st.just(-1), st.just(VOCAB_SIZE)), max_size=70)
_depth = st.integers(-1, 80)


class VerifiersGoneWild(RuleBasedStateMachine):
    """Keeps beside the store what a proposer would hold, and the last rows, for replays."""

    def __init__(self) -> None:
        super().__init__()
        self.bench = SessionBench(max_sessions=4, max_memory_bytes=1 << 16)
        self.held: dict[int, list[int]] = {}
        """Committed ids by handle, as a proposer knows them."""
        self.sent: list[tuple[Lessee, Open | Commit]] = []

    def apply(self, verifier: Lessee, *rows: Open | Commit) -> Changes:
        """Send rows, and check the answers against them."""
        changes = self.bench.send(*rows, lessee=verifier)
        self.follow(changes)
        self.sent += [(verifier, row) for row in rows]
        answers = len(changes.resyncs) + len(changes.refusals) + len(changes.chains) + len(changes.wishes)
        assert answers <= len(rows), "more answers than rows"
        return changes

    def follow(self, changes: Changes) -> None:
        """What a proposer would do."""
        for facts in changes.opened:
            assert facts.handle not in self.held, "a handle came twice"
            self.held[facts.handle] = []
        for context in changes.extended:
            ids = context.token_ids.tolist()
            assert ids[: len(self.held[context.handle])] == self.held[context.handle], "a context was rewritten"
            assert all(0 <= token < VOCAB_SIZE for token in ids)
            self.held[context.handle] = ids
        for wish in changes.wishes:
            assert 1 <= wish.request.depth <= 64
            assert wish.request.context.token_ids.tolist() == self.held[wish.request.context.handle]
        for ending in changes.ended:
            del self.held[ending.handle]

    @rule(verifier=_verifier, session=_session, epoch=_epoch, ids=_ids, cap=st.integers(-1, 9))
    def open(self, verifier: Lessee, session: int, epoch: int, ids: list[int], cap: int) -> None:
        self.apply(verifier, opening(session, ids, epoch, cap))

    @rule(verifier=_verifier, session=_session, epoch=_epoch, base=st.integers(-1, 200), ids=_ids, depth=_depth)
    def commit_anything(
        self, verifier: Lessee, session: int, epoch: int, base: int, ids: list[int], depth: int
    ) -> None:
        self.apply(verifier, commit(session, base, ids, epoch, depth))

    @rule(verifier=_verifier, session=st.integers(1, 4), ids=st.lists(st.integers(0, 3), max_size=70), depth=_depth)
    def commit_in_step(self, verifier: Lessee, session: int, ids: list[int], depth: int) -> None:
        for epoch in (1, 2, 3):
            # An open of the epoch, if it is not stale; what follows it then is in step, and must be understood.
            changes = self.apply(verifier, opening(session, [1, 2], epoch))
            if changes.opened and not changes.refusals:
                follow_up = self.apply(verifier, commit(session, 2, ids, epoch, depth))
                assert not follow_up.resyncs
                return

    @precondition(lambda self: self.sent)
    @rule(data=st.data())
    def replay(self, data: st.DataObject) -> None:
        verifier, row = data.draw(st.sampled_from(self.sent[-20:]))
        before = len(self.bench.store)
        self.apply(verifier, row)
        assert len(self.bench.store) <= before + 1

    @rule(verifier=_verifier, session=_session, epoch=_epoch)
    def close(self, verifier: Lessee, session: int, epoch: int) -> None:
        self.follow(self.bench.send(close(session, epoch), lessee=verifier))

    @rule(seconds=st.floats(0, 40))
    def time_passes(self, seconds: float) -> None:
        self.bench.clock.advance(seconds)
        self.follow(self.bench.rules.expire())

    @rule(verifier=_verifier)
    def link_is_lost(self, verifier: Lessee) -> None:
        self.bench.store.touch_all(verifier.incarnation)

    @invariant()
    def proposer_and_store_agree(self) -> None:
        assert len(self.held) == len(self.bench.store) <= 4
        assert 0 <= self.bench.store.held_bytes <= 1 << 16
        assert bool(self.bench.store.held_bytes) == bool(self.held)

    def teardown(self) -> None:
        self.bench.clock.advance(2 * LESSEE.lease_s)
        self.follow(self.bench.rules.expire())
        assert len(self.bench.store) == 0 and self.bench.store.held_bytes == 0 and not self.held


TestVerifiersGoneWild = VerifiersGoneWild.TestCase
TestVerifiersGoneWild.settings = settings(max_examples=60, stateful_step_count=40)
