"""Frames to a worker: merged, bounded, in a legal order."""

from __future__ import annotations

from outrider_doubles.strict_worker import StrictWorker

from outrider_target.drafting.outbox import Outbox
from outrider_target.drafting.session import DraftedRequest, DraftSession, Want
from outrider_target.drafting.speculator import SessionSpec
from outrider_wire.drafting import MAX_OPEN_TOKEN_IDS, MAX_ROUND_ROWS, Close, CloseOutcome
from outrider_wire.sampling import SamplingParams


def session_of(number: int, length: int) -> DraftSession:
    spec = SessionSpec(number, tuple(range(length)), length, SamplingParams(seed=5), depth_cap=8, tenant="t")
    session = DraftSession(number, "pool", DraftedRequest(spec, list(spec.token_ids)))
    session.start_epoch("worker", now_s=0.0)
    return session


def wish(session: DraftSession, depth: int) -> None:
    session.request.want = Want(len(session.request.ids), depth, at_s=0.0)
    session.wish(now_s=0.0)


def outbox_with(*sessions: DraftSession, max_frame_bytes: int = 1 << 18, max_pending_closes: int = 2) -> Outbox:
    outbox = Outbox(max_frame_bytes, max_pending_closes)
    for session in sessions:
        outbox.mark(session)
    return outbox


def test_an_outbox_without_news_has_no_frame() -> None:
    outbox = outbox_with(session_of(1, 3))
    assert outbox.take(deadline_ms=20) is not None
    assert outbox.take(deadline_ms=20) is None


def test_commits_of_several_steps_merge_and_only_the_last_wish_travels() -> None:
    session = session_of(1, 3)
    outbox = outbox_with(session)
    outbox.take(20)
    for token in (7, 8, 9):
        session.request.ids.append(token)
        wish(session, depth=token)
        outbox.mark(session)
    frame = outbox.take(20)
    assert frame is not None
    (commit,) = frame.commits
    assert (commit.base_length, commit.delta, commit.next_depth, commit.deadline_ms) == (3, (7, 8, 9), 9, 20)


def test_a_session_opens_with_all_that_shapes_drafts() -> None:
    frame = outbox_with(session_of(4, 3)).take(20)
    assert frame is not None
    (opening,) = frame.opens
    assert (opening.session, opening.epoch, opening.token_ids) == (4, 1, (0, 1, 2))
    assert (opening.prompt_length, opening.depth_cap, opening.seed, opening.tenant) == (3, 8, 5, "t")


def test_a_long_prompt_is_cut_below_the_limits_and_asks_only_at_its_end() -> None:
    session = session_of(1, 3 * MAX_OPEN_TOKEN_IDS)
    wish(session, depth=4)
    outbox, worker = outbox_with(session), StrictWorker()
    asked = []
    while (frame := outbox.take(20)) is not None:
        worker.apply(frame)
        asked.append(worker.asked)
    assert len(asked) == 1 and asked[-1] == 1
    assert worker.sessions[1].ids == session.request.ids


def test_a_frame_closes_at_its_byte_cap_and_the_others_get_their_turn() -> None:
    long, short = session_of(1, 5000), session_of(2, 3)
    outbox, worker = outbox_with(long, short, max_frame_bytes=2048), StrictWorker()
    frames = 0
    while (frame := outbox.take(20)) is not None:
        ids = sum(len(row.token_ids) for row in frame.opens) + sum(len(row.delta) for row in frame.commits)
        assert ids * 5 <= 2048
        worker.apply(frame)
        frames += 1
        assert frames < 2 or 2 in worker.sessions, "the short session waits for one frame at most"
    assert worker.sessions[1].ids == long.request.ids and frames > 10


def test_a_session_that_was_never_told_of_needs_no_close() -> None:
    session = session_of(1, 3)
    outbox = outbox_with(session)
    outbox.close(session, CloseOutcome.FINISHED)
    assert outbox.take(20) is None


def test_a_close_names_the_epoch_that_the_worker_knows() -> None:
    session = session_of(1, 3)
    outbox = outbox_with(session)
    outbox.take(20)
    session.start_epoch("worker", now_s=0.0)
    outbox.close(session, CloseOutcome.FINISHED)
    frame = outbox.take(20)
    assert frame is not None and frame.closes == (Close(1, 1, CloseOutcome.FINISHED),)


def test_a_session_that_comes_back_before_its_close_was_sent_is_still_closed_later() -> None:
    session = session_of(1, 3)
    outbox = outbox_with(session)
    outbox.take(20)
    outbox.close(session, CloseOutcome.ABORTED)
    session.worker = None
    session.start_epoch("worker", now_s=0.0)
    outbox.mark(session)
    outbox.close(session, CloseOutcome.FINISHED)
    frame = outbox.take(20)
    assert frame is not None and frame.closes == (Close(1, 1, CloseOutcome.FINISHED),)


def test_closes_for_a_stalled_link_are_bounded() -> None:
    sessions = [session_of(number, 3) for number in range(1, 6)]
    outbox = outbox_with(*sessions, max_pending_closes=2)
    outbox.take(20)
    for session in sessions:
        outbox.close(session, CloseOutcome.ABORTED)
    frame = outbox.take(20)
    assert frame is not None and len(frame.closes) == 2


def test_a_lost_connection_forgets_everything() -> None:
    told, untold = session_of(1, 3), session_of(2, 3)
    outbox = outbox_with(told)
    outbox.take(20)
    outbox.close(told, CloseOutcome.ABORTED)
    outbox.mark(untold)
    outbox.clear()
    assert outbox.take(20) is None


def test_more_rows_than_a_frame_may_hold_follow_in_the_next() -> None:
    count = MAX_ROUND_ROWS + 3
    outbox = outbox_with(*(session_of(number, 1) for number in range(1, count + 1)), max_frame_bytes=1 << 30)
    first, second = outbox.take(20), outbox.take(20)
    assert first is not None and second is not None and outbox.take(20) is None
    assert [len(first.opens), len(second.opens)] == [MAX_ROUND_ROWS, 3]
    assert {row.session for row in (*first.opens, *second.opens)} == set(range(1, count + 1))


def test_closes_that_no_longer_fit_into_a_frame_follow_in_the_next() -> None:
    told = [session_of(number, 1) for number in range(1, 6)]
    outbox = outbox_with(*told, max_frame_bytes=1 << 30, max_pending_closes=5)
    outbox.take(20)
    for session in told:
        outbox.close(session, CloseOutcome.FINISHED)
    for number in range(6, 6 + MAX_ROUND_ROWS - 2):
        outbox.mark(session_of(number, 1))
    first, second = outbox.take(20), outbox.take(20)
    assert first is not None and second is not None and outbox.take(20) is None
    assert len(first.opens) + len(first.closes) == MAX_ROUND_ROWS
    assert [row.session for row in (*first.closes, *second.closes)] == [1, 2, 3, 4, 5]
