"""Frames of a draft worker that are within the message limit, and far too much all the same."""

from __future__ import annotations

import pytest

from outrider.v1 import draft_pb2 as pb
from outrider_wire.draft_codec import MalformedFrame, drafter_frame_from
from outrider_wire.drafting import MAX_CHAIN_TOKENS, MAX_ROUND_ROWS, DrafterRound


def round_of(chains: int = 0, resyncs: int = 0, refusals: int = 0) -> pb.SpeculateResponse:
    rows = pb.DrafterRound(
        chains=[pb.Chain()] * chains, resyncs=[pb.ResyncRequest()] * resyncs, refusals=[pb.Refusal()] * refusals
    )
    return pb.SpeculateResponse(round=rows)


def test_a_frame_may_hold_so_many_rows() -> None:
    frame = drafter_frame_from(round_of(MAX_ROUND_ROWS - 2, 1, 1))
    assert isinstance(frame, DrafterRound) and len(frame.chains) == MAX_ROUND_ROWS - 2


@pytest.mark.parametrize("kind", ["chains", "resyncs", "refusals"])
def test_a_frame_with_more_rows_of_any_kind_is_malformed(kind: str) -> None:
    more = {"chains": 1, kind: MAX_ROUND_ROWS + (kind == "chains")}
    with pytest.raises(MalformedFrame, match=f"{MAX_ROUND_ROWS + 1} rows"):
        drafter_frame_from(round_of(**more))


def test_a_chain_that_is_too_long_is_read_no_further_than_that_shows() -> None:
    endless = pb.Chain(token_ids=[1] * 100_000, confidences=[0.5] * 100_000)
    frame = drafter_frame_from(pb.SpeculateResponse(round=pb.DrafterRound(chains=[endless])))
    assert isinstance(frame, DrafterRound)
    assert len(frame.chains[0].token_ids) == len(frame.chains[0].confidences) == MAX_CHAIN_TOKENS + 1
