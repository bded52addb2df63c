"""Proposals that were drawn by chance: their laws are checked, and nothing is decided by the ids themselves."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outrider_target.drafting.inbox import Inbox, confident_prefix, is_well_formed
from outrider_wire.draft_law import DraftLaw
from outrider_wire.drafting import Chain

LAW = DraftLaw((1, 2, 3), (5, 3, 2))


def chain(ids: tuple[int, ...], laws: tuple[DraftLaw, ...], confidences: tuple[float, ...] = ()) -> Chain:
    return Chain(1, 1, 2, ids, confidences, laws)


@pytest.mark.parametrize(
    ("bad", "wants_laws"),
    [
        pytest.param(chain((1,), (LAW,)), False, id="laws that nobody asked for"),
        pytest.param(chain((1, 2), (LAW,)), True, id="fewer laws than ids"),
        pytest.param(chain((), (LAW,)), True, id="laws without ids"),
        pytest.param(chain((4,), (LAW,)), True, id="an id that its law does not list"),
        pytest.param(chain((1,), (DraftLaw((1, 10), (1, 1)),)), True, id="a listed id out of range"),
    ],
)
def test_laws_that_an_honest_worker_cannot_send_are_malformed(bad: Chain, wants_laws: bool) -> None:
    assert not is_well_formed(bad, vocab_size=10, sent_length=3, depth_cap=4, wants_draft_laws=wants_laws)


def test_laws_that_were_asked_for_may_come_or_not() -> None:
    for good in (chain((1, 3), (LAW, DraftLaw())), chain((1, 3), ())):
        assert is_well_formed(good, vocab_size=10, sent_length=3, depth_cap=4, wants_draft_laws=True)


laws = st.lists(st.integers(1, 9), min_size=3, max_size=3).map(lambda weights: DraftLaw((1, 2, 3), tuple(weights)))


@given(
    steps=st.lists(st.tuples(laws, st.integers(1, 3), st.integers(1, 3)), min_size=1, max_size=6),
    said=st.lists(st.floats(0, 1), min_size=6, max_size=6),
    least=st.floats(0, 1),
)
def test_where_a_drawn_proposal_is_cut_does_not_depend_on_what_was_drawn_nor_on_what_the_worker_says(
    steps: list[tuple[DraftLaw, int, int]], said: list[float], least: float
) -> None:
    told = tuple(said[: len(steps)])
    one = chain(tuple(first for _, first, _ in steps), tuple(law for law, _, _ in steps), told)
    other = chain(tuple(second for _, _, second in steps), one.draft_laws)
    cut = confident_prefix(one, least)
    assert len(cut.token_ids) == len(confident_prefix(other, least).token_ids) == len(cut.draft_laws)
    expected = next((i for i, (law, _, _) in enumerate(steps) if law.confidence < least), len(steps))
    assert len(cut.token_ids) == expected


def test_a_certain_id_among_drawn_ones_keeps_the_confidence_that_came_with_it() -> None:
    mixed = chain((1, 7, 2), (LAW, DraftLaw(), LAW), (0.0, 0.3, 0.0))
    assert confident_prefix(mixed, 0.4).token_ids == (1,)
    assert confident_prefix(mixed, 0.2).token_ids == (1, 7, 2)


def test_laws_go_with_what_is_left_of_a_proposal() -> None:
    inbox, other = Inbox(once=True), DraftLaw((5, 6), (1, 1))
    assert inbox.offer(chain((1, 5, 2), (LAW, other, DraftLaw())), [8, 9]) is None
    assert inbox.usable([8, 9, 1], 3) == (5, 2)
    assert inbox.last_laws(2) == (other, DraftLaw())


def test_what_is_left_of_a_drawn_proposal_is_not_verified_twice() -> None:
    inbox, ids = Inbox(once=True), [8, 9]
    assert inbox.offer(chain((1, 2, 3), (LAW, LAW, LAW)), ids) is None
    inbox.mark_used()
    ids += [1, 2]  # the round stopped early, and its own token happens to be the proposed one
    assert inbox.usable(ids, 4) == ()
    again = Inbox()
    again.offer(chain((1, 2, 3), ()), [8, 9])
    again.mark_used()
    assert again.usable(ids, 4) == (3,), "equality does not mind"
