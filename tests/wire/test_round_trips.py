"""Every message survives the wire, and what was never sent is refused or read with care."""

from __future__ import annotations

import pytest
from hypothesis import given
from outrider_doubles import wire_values

from outrider.v1 import draft_pb2, generate_pb2, registry_pb2
from outrider_runtime.errors import InvalidRequest
from outrider_wire.decoding import message_from
from outrider_wire.draft_codec import (
    MAX_NAME_CHARACTERS,
    MalformedFrame,
    drafter_frame_from,
    speculate_request_from,
    speculate_response_from,
    verifier_frame_from,
)
from outrider_wire.drafting import CloseOutcome, DrafterFrame, DrafterRound, Load, VerifierFrame, VerifierRound
from outrider_wire.generate_codec import (
    generate_request_from,
    generate_response_from,
    generation_delta_from,
    generation_request_from,
)
from outrider_wire.generation import FinishReason, GenerationDelta, GenerationRequest
from outrider_wire.loss_codec import losses_from, losses_to
from outrider_wire.losses import LossKind
from outrider_wire.registry import Member, Snapshot
from outrider_wire.registry_codec import member_from, members_to, snapshot_from
from outrider_wire.scaling_codec import decisions_to


@given(wire_values.verifier_frames)
def test_a_verifiers_frame_survives_the_wire(frame: VerifierFrame) -> None:
    data = speculate_request_from(frame).SerializeToString()
    assert verifier_frame_from(message_from(draft_pb2.SpeculateRequest, data)) == frame


@given(wire_values.drafter_frames)
def test_a_drafters_frame_survives_the_wire(frame: DrafterFrame) -> None:
    data = speculate_response_from(frame).SerializeToString()
    assert drafter_frame_from(message_from(draft_pb2.SpeculateResponse, data)) == frame


@given(wire_values.requests)
def test_a_request_survives_the_wire(request: GenerationRequest) -> None:
    data = generate_request_from(request).SerializeToString()
    assert generation_request_from(message_from(generate_pb2.GenerateRequest, data)) == request


@given(wire_values.deltas)
def test_a_piece_of_an_answer_survives_the_wire(delta: GenerationDelta) -> None:
    data = generate_response_from(delta).SerializeToString()
    assert generation_delta_from(message_from(generate_pb2.GenerateResponse, data)) == delta


@given(wire_values.snapshots)
def test_a_snapshot_survives_the_wire(snapshot: Snapshot) -> None:
    message = registry_pb2.GetSnapshotResponse(
        members=members_to(snapshot), scaling=decisions_to(snapshot), losses=losses_to(snapshot)
    )
    data = message.SerializeToString()
    assert snapshot_from(message_from(registry_pb2.GetSnapshotResponse, data)) == snapshot


def test_an_idle_worker_is_not_a_worker_that_says_nothing_of_its_load() -> None:
    idle, silent = DrafterRound(load=Load(0, 0, 0)), DrafterRound()
    assert drafter_frame_from(speculate_response_from(idle)) == idle
    assert drafter_frame_from(speculate_response_from(silent)) == silent


def test_an_absent_request_field_means_what_the_proto_says() -> None:
    request = generation_request_from(generate_pb2.GenerateRequest(text="a"))
    assert request == GenerationRequest(prompt_text="a")
    assert (request.sampling.top_p, request.sampling.n, request.sampling.seed) == (1.0, 1, None)


def test_no_ids_and_no_prompt_are_told_apart() -> None:
    empty = generation_request_from(generate_pb2.GenerateRequest(token_ids={"ids": []}))
    assert empty.prompt_token_ids == ()
    assert generation_request_from(generate_pb2.GenerateRequest()).prompt_token_ids is None


def test_a_frame_that_holds_nothing_is_malformed() -> None:
    for decode in (
        lambda: verifier_frame_from(draft_pb2.SpeculateRequest()),
        lambda: drafter_frame_from(draft_pb2.SpeculateResponse()),
    ):
        with pytest.raises(MalformedFrame) as refusal:
            decode()
        assert (refusal.value.field, refusal.value.allowed) == ("frame", "hello or round")


@pytest.mark.parametrize("field", ["tokenizer_fingerprint", "weight_version", "incarnation", "pool", "method"])
def test_a_text_in_a_hello_is_bounded(field: str) -> None:
    longest = draft_pb2.Hello(**{field: "x" * MAX_NAME_CHARACTERS})
    assert verifier_frame_from(draft_pb2.SpeculateRequest(hello=longest))
    longer = draft_pb2.Hello(**{field: "x" * (MAX_NAME_CHARACTERS + 1)})
    with pytest.raises(MalformedFrame, match=f"hello.{field}"):
        drafter_frame_from(draft_pb2.SpeculateResponse(hello=longer))


@pytest.mark.parametrize("token_id", [-1, 2**31 - 1, -(2**31)])
def test_a_token_id_out_of_range_is_left_to_the_verifier(token_id: int) -> None:
    message = draft_pb2.SpeculateResponse(round={"chains": [{"session": 1, "token_ids": [token_id]}]})
    frame = drafter_frame_from(message)
    assert isinstance(frame, DrafterRound) and frame.chains[0].token_ids == (token_id,)


@pytest.mark.parametrize("outcome", [0, 3, 1000])
def test_an_unknown_outcome_counts_as_aborted(outcome: int) -> None:
    data = draft_pb2.SpeculateRequest(round={"closes": [{"session": 1, "outcome": outcome}]}).SerializeToString()
    frame = verifier_frame_from(draft_pb2.SpeculateRequest.FromString(data))
    assert isinstance(frame, VerifierRound) and frame.closes[0].outcome is CloseOutcome.ABORTED


def test_an_unknown_finish_reason_counts_as_aborted() -> None:
    delta = generation_delta_from(generate_pb2.GenerateResponse(finished={"reason": 17}))
    assert delta.finished is not None and delta.finished.reason is FinishReason.ABORT


@pytest.mark.parametrize("how", [0, 3, 1000])
def test_an_unknown_kind_of_loss_counts_as_silence(how: int) -> None:
    message = registry_pb2.PoolLosses(pool="p", count=1, last={"how": how})
    assert losses_from(registry_pb2.PoolLosses.FromString(message.SerializeToString())).last.how is LossKind.SILENT


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"incarnation": ""}, "member.incarnation"),
        ({"incarnation": "x" * 65}, "member.incarnation"),
        ({"kind": 0}, "member.kind"),
        ({"kind": 9}, "member.kind"),
        ({"state": 0}, "member.state"),
        ({"state": 9}, "member.state"),
    ],
)
def test_a_member_without_name_kind_or_state_is_refused(change: dict[str, object], field: str) -> None:
    right = {"incarnation": "a", "kind": 1, "state": 1}
    assert isinstance(member_from(registry_pb2.Member(**right)), Member)
    with pytest.raises(InvalidRequest) as refusal:
        member_from(registry_pb2.Member(**{**right, **change}))
    assert refusal.value.field == field


@pytest.mark.parametrize("data", [b"\xff" * 40, b"\x12\xff\xff\xff\xff\x0f\x00", b"\x0a\x01\xff", b"\x0b" * 200])
def test_bytes_that_are_no_message_are_refused_by_size_and_kind(data: bytes) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        message_from(generate_pb2.GenerateRequest, data)
    assert refusal.value.field == "message"
    assert f"{len(data)} bytes" in str(refusal.value) and "outrider.v1.GenerateRequest" in str(refusal.value)


def test_what_cannot_be_read_of_a_drafter_is_a_malformed_frame() -> None:
    with pytest.raises(MalformedFrame):
        message_from(draft_pb2.SpeculateResponse, b"\xff", MalformedFrame)
