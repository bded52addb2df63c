"""A value that no message can carry is refused where it is sent, by name, value and bounds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from outrider_doubles.echo_services import VERIFIER, serving_echo

from outrider.v1 import draft_pb2
from outrider_runtime.errors import InvalidRequest
from outrider_wire.draft_codec import MalformedFrame, speculate_request_from
from outrider_wire.drafting import Close, CloseOutcome, Commit, Open, VerifierRound
from outrider_wire.encoding import misfits_named
from outrider_wire.generate_client import GenerateClient
from outrider_wire.generate_codec import generate_request_from
from outrider_wire.generation import GenerationRequest
from outrider_wire.registry import Member, MemberKind, MemberState
from outrider_wire.registry_client import RegistryClient
from outrider_wire.registry_codec import heartbeat_request_from
from outrider_wire.sampling import SamplingParams, SpeculationOptions

MEMBER = Member("m", MemberKind.GATEWAY, MemberState.READY, "", "node", 1)
OPEN = Open(session=1, epoch=1, token_ids=(1,), prompt_length=1, depth_cap=1)
COMMIT = Commit(session=1, epoch=1, base_length=0, delta=(1,), next_depth=1)
TEXT = "Unicode text without lone surrogates"


def asked(**fields: object) -> Callable[[], object]:
    return lambda: generate_request_from(GenerationRequest(**fields))  # type: ignore[arg-type]


def sampled(**fields: object) -> Callable[[], object]:
    return asked(sampling=SamplingParams(**fields))  # type: ignore[arg-type]


def committed(*rows: Commit) -> Callable[[], object]:
    return lambda: speculate_request_from(VerifierRound(commits=rows))


MISFITS = {
    "text": (asked(prompt_text="\ud800"), "prompt_text", r"'\ud800'", TEXT),
    "prompt id": (asked(prompt_token_ids=(1, 2**31)), "prompt_token_ids[1]", "2147483648", "-2^31 to 2^31 - 1"),
    "committed id": (asked(committed_token_ids=(-(2**40),)), "committed_token_ids[0]", "-109", "-2^31 to 2^31 - 1"),
    "request id": (asked(request_id="\udfff"), "request_id", r"'\udfff'", TEXT),
    "seed above": (sampled(seed=2**64), "sampling.seed", "18446744073709551616", "0 to 2^64 - 1"),
    "seed below": (sampled(seed=-1), "sampling.seed", "-1", "0 to 2^64 - 1"),
    "max_tokens": (sampled(max_tokens=2**32), "sampling.max_tokens", "4294967296", "0 to 2^32 - 1"),
    "temperature": (sampled(temperature=10**400), "sampling.temperature", "1000", "a number"),
    "temperature of another type": (sampled(temperature="hot"), "sampling.temperature", "'hot'", "a number"),
    "n of another type": (sampled(n=1.5), "sampling.n", "1.5", "0 to 2^32 - 1"),
    "ignore_eos of another type": (sampled(ignore_eos="no"), "sampling.ignore_eos", "'no'", "true or false"),
    "stop string": (sampled(stop=("a", "\ud800")), "sampling.stop[1]", r"'\ud800'", TEXT),
    "stop id": (sampled(stop_token_ids=(2**31,)), "sampling.stop_token_ids[0]", "2147", "-2^31 to 2^31 - 1"),
    "depth": (asked(speculation=SpeculationOptions(max_depth=-1)), "speculation.max_depth", "-1", "0 to 2^32 - 1"),
    "hello": (lambda: speculate_request_from(replace(VERIFIER, vocab_size=-1)), "vocab_size", "-1", "0 to 2^32 - 1"),
    "open": (
        lambda: speculate_request_from(VerifierRound(opens=(OPEN, replace(OPEN, seed=2**64)))),
        "opens[1].seed",
        "1844",
        "0 to 2^64 - 1",
    ),
    "delta": (committed(COMMIT, replace(COMMIT, delta=(1, 2**31))), "commits[1].delta[1]", "2147", "2^31 - 1"),
    "length": (committed(replace(COMMIT, base_length=2**32)), "commits[0].base_length", "4294967296", "2^32 - 1"),
    "close": (
        lambda: speculate_request_from(VerifierRound(closes=(Close(-1, 1, CloseOutcome.FINISHED),))),
        "closes[0].session",
        "-1",
        "0 to 2^64 - 1",
    ),
    "pid": (lambda: heartbeat_request_from(replace(MEMBER, pid=-1), "", False), "member.pid", "-1", "0 to 2^32 - 1"),
    "metrics": (lambda: heartbeat_request_from(MEMBER, "a\ud800", False), "metrics", r"'a\ud800'", TEXT),
}


@pytest.mark.parametrize(("encode", "field", "value", "allowed"), MISFITS.values(), ids=MISFITS)
def test_a_value_that_does_not_fit_is_refused_by_name_value_and_bounds(
    encode: Callable[[], object], field: str, value: str, allowed: str
) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        encode()
    assert not isinstance(refusal.value, MalformedFrame), "a verifier's own slip must not quarantine a worker"
    assert refusal.value.field == field
    assert repr(refusal.value.value).startswith(value)
    assert allowed in refusal.value.allowed


async def test_clients_refuse_it_before_anything_is_sent() -> None:
    async with serving_echo() as echo:
        with pytest.raises(InvalidRequest, match=r"sampling\.seed"):
            await anext(GenerateClient(echo.channel).generate(GenerationRequest(sampling=SamplingParams(seed=2**64))))
        with pytest.raises(InvalidRequest, match=r"member\.pid"):
            await RegistryClient(echo.channel).heartbeat(replace(MEMBER, pid=2**32), "")
        stream = await echo.draft_stream()
        with pytest.raises(InvalidRequest, match="delta"):
            await stream.send(VerifierRound(commits=(replace(COMMIT, delta=(2**31,)),)))
        await stream.send(VerifierRound(commits=(COMMIT,)))
        assert (await stream.receive()) is not None, "the stream lives on"
        assert (echo.generator.requests, echo.registry.metrics) == ([], [])


def test_an_error_that_no_value_explains_is_left_as_it_is() -> None:
    with pytest.raises(ValueError, match=r"^ours$"), misfits_named(draft_pb2.Commit, COMMIT):
        raise ValueError("ours")
