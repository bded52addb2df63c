"""Frames of the round protocol, between domain words and protobuf. Total and reversible.

Decoding checks the shape of a frame, never the values of token ids: the verifier judges those row by row, so that one
bad row costs one session and not the link. What costs time or room in proportion to its size is bounded here: texts of
a Hello, which reach logs and statuses, and rows, of which a frame within the message limit could hold millions.
"""

from __future__ import annotations

from outrider.v1 import draft_pb2 as pb
from outrider_runtime.errors import InvalidRequest, Words
from outrider_wire.draft_law import MAX_LAW_IDS, DraftLaw
from outrider_wire.drafting import (
    MAX_CHAIN_TOKENS,
    MAX_ROUND_ROWS,
    Chain,
    Close,
    CloseOutcome,
    Commit,
    DrafterFrame,
    DrafterRound,
    Hello,
    Load,
    Open,
    Refusal,
    ResyncRequest,
    VerifierFrame,
    VerifierRound,
)
from outrider_wire.encoding import misfits_named

MAX_NAME_CHARACTERS = 256
"""Of any text in a Hello."""

_OUTCOME_TO_PB = {
    CloseOutcome.FINISHED: pb.CLOSE_OUTCOME_FINISHED,
    CloseOutcome.ABORTED: pb.CLOSE_OUTCOME_ABORTED,
}


class MalformedFrame(InvalidRequest):
    """A frame of the round protocol that cannot be read."""


class TooManyRows(MalformedFrame):
    """A frame with more rows than either side may send at once; it was not taken apart."""


def speculate_request_from(frame: VerifierFrame) -> pb.SpeculateRequest:
    """A verifier's frame as it goes on the wire.

    Raises:
        InvalidRequest: a value does not fit.
    """
    if isinstance(frame, Hello):
        with misfits_named(pb.Hello, frame):
            return pb.SpeculateRequest(hello=_hello_to(frame))
    with misfits_named(pb.VerifierRound, frame):
        return pb.SpeculateRequest(round=_verifier_round_to(frame))


def _verifier_round_to(frame: VerifierRound) -> pb.VerifierRound:
    return pb.VerifierRound(
        opens=[_open_to(item) for item in frame.opens],
        commits=[_commit_to(item) for item in frame.commits],
        closes=[pb.Close(session=c.session, epoch=c.epoch, outcome=_OUTCOME_TO_PB[c.outcome]) for c in frame.closes],
    )


def verifier_frame_from(message: pb.SpeculateRequest) -> VerifierFrame:
    """A verifier's frame as it came off the wire.

    Raises:
        MalformedFrame: no known frame is set, or a text in a Hello is too long.
        TooManyRows: there are too many rows.
    """
    match message.WhichOneof("frame"):
        case "hello":
            return _hello_from(message.hello)
        case "round":
            _check_rows(len(message.round.opens) + len(message.round.commits) + len(message.round.closes))
            return VerifierRound(
                opens=tuple(_open_from(item) for item in message.round.opens),
                commits=tuple(_commit_from(item) for item in message.round.commits),
                closes=tuple(Close(c.session, c.epoch, _outcome_from(c.outcome)) for c in message.round.closes),
            )
        case other:
            raise MalformedFrame("frame", other, "hello or round")


def speculate_response_from(frame: DrafterFrame) -> pb.SpeculateResponse:
    """A draft worker's frame as it goes on the wire."""
    if isinstance(frame, Hello):
        return pb.SpeculateResponse(hello=_hello_to(frame))
    message = pb.DrafterRound(
        chains=[
            pb.Chain(
                session=chain.session,
                epoch=chain.epoch,
                base_length=chain.base_length,
                token_ids=chain.token_ids,
                confidences=chain.confidences,
                draft_laws=[pb.DraftLaw(ids=law.token_ids, weights=law.weights) for law in chain.draft_laws],
            )
            for chain in frame.chains
        ],
        resyncs=[pb.ResyncRequest(session=r.session, epoch=r.epoch, have_length=r.have_length) for r in frame.resyncs],
        refusals=[pb.Refusal(session=r.session, epoch=r.epoch) for r in frame.refusals],
    )
    if frame.load is not None:
        message.load.queued_rows = frame.load.queued_rows
        message.load.free_sessions = frame.load.free_sessions
        message.load.draft_time_us = frame.load.draft_time_us
        message.load.SetInParent()
    return pb.SpeculateResponse(round=message)


def drafter_frame_from(message: pb.SpeculateResponse) -> DrafterFrame:
    """A draft worker's frame as it came off the wire. Its contents are not to be trusted.

    Raises:
        MalformedFrame: no known frame is set, a text in a Hello is too long, or there are too many rows.
    """
    match message.WhichOneof("frame"):
        case "hello":
            return _hello_from(message.hello)
        case "round":
            return _drafter_round_from(message.round)
        case other:
            raise MalformedFrame("frame", other, "hello or round")


def _drafter_round_from(message: pb.DrafterRound) -> DrafterRound:
    _check_rows(len(message.chains) + len(message.resyncs) + len(message.refusals))
    load = message.load
    return DrafterRound(
        chains=tuple(_chain_from(chain) for chain in message.chains),
        resyncs=tuple(ResyncRequest(r.session, r.epoch, r.have_length) for r in message.resyncs),
        refusals=tuple(Refusal(r.session, r.epoch) for r in message.refusals),
        load=Load(load.queued_rows, load.free_sessions, load.draft_time_us) if message.HasField("load") else None,
    )


def _check_rows(rows: int) -> None:
    if rows > MAX_ROUND_ROWS:
        raise TooManyRows("round", Words(f"{rows} rows"), f"at most {MAX_ROUND_ROWS} rows")


def _chain_from(message: pb.Chain) -> Chain:
    """A chain or law that is too long stays too long, but no longer than it takes to see that."""
    enough = MAX_CHAIN_TOKENS + 1
    ids, confidences = message.token_ids[:enough], message.confidences[:enough]
    laws = tuple(_law_from(law) for law in message.draft_laws[:enough])
    return Chain(message.session, message.epoch, message.base_length, tuple(ids), tuple(confidences), laws)


def _law_from(message: pb.DraftLaw) -> DraftLaw:
    enough = MAX_LAW_IDS + 1
    return DraftLaw(tuple(message.ids[:enough]), tuple(message.weights[:enough]))


def _hello_to(hello: Hello) -> pb.Hello:
    return pb.Hello(
        protocol_version=hello.protocol_version,
        tokenizer_fingerprint=hello.tokenizer_fingerprint,
        vocab_size=hello.vocab_size,
        weight_version=hello.weight_version,
        incarnation=hello.incarnation,
        lease_ms=hello.lease_ms,
        pool=hello.pool,
        method=hello.method,
    )


def _hello_from(message: pb.Hello) -> Hello:
    for field in ("tokenizer_fingerprint", "weight_version", "incarnation", "pool", "method"):
        text = getattr(message, field)
        if len(text) > MAX_NAME_CHARACTERS:
            raise MalformedFrame(f"hello.{field}", text, f"at most {MAX_NAME_CHARACTERS} characters")
    return Hello(
        protocol_version=message.protocol_version,
        tokenizer_fingerprint=message.tokenizer_fingerprint,
        vocab_size=message.vocab_size,
        incarnation=message.incarnation,
        weight_version=message.weight_version,
        lease_ms=message.lease_ms,
        pool=message.pool,
        method=message.method,
    )


def _open_to(item: Open) -> pb.Open:
    return pb.Open(
        session=item.session,
        epoch=item.epoch,
        token_ids=item.token_ids,
        prompt_length=item.prompt_length,
        depth_cap=item.depth_cap,
        seed=item.seed,
        temperature=item.temperature,
        top_k=item.top_k,
        top_p=item.top_p,
        tenant=item.tenant,
        shares_noise=item.shares_noise,
        wants_draft_laws=item.wants_draft_laws,
    )


def _open_from(message: pb.Open) -> Open:
    return Open(
        session=message.session,
        epoch=message.epoch,
        token_ids=tuple(message.token_ids),
        prompt_length=message.prompt_length,
        depth_cap=message.depth_cap,
        seed=message.seed,
        temperature=message.temperature,
        top_k=message.top_k,
        top_p=message.top_p,
        tenant=message.tenant,
        shares_noise=message.shares_noise,
        wants_draft_laws=message.wants_draft_laws,
    )


def _commit_to(item: Commit) -> pb.Commit:
    return pb.Commit(
        session=item.session,
        epoch=item.epoch,
        base_length=item.base_length,
        delta=item.delta,
        next_depth=item.next_depth,
        deadline_ms=item.deadline_ms,
    )


def _commit_from(message: pb.Commit) -> Commit:
    return Commit(
        session=message.session,
        epoch=message.epoch,
        base_length=message.base_length,
        delta=tuple(message.delta),
        next_depth=message.next_depth,
        deadline_ms=message.deadline_ms,
    )


def _outcome_from(value: pb.CloseOutcome) -> CloseOutcome:
    # Unspecified and unknown outcomes count as aborted: nothing doubtful may enter a shared corpus.
    return CloseOutcome.FINISHED if value == pb.CLOSE_OUTCOME_FINISHED else CloseOutcome.ABORTED
