"""Bodies that are short in bytes and long in values: refused before anything is built from them, and legal ones not."""

from __future__ import annotations

import json

import pytest
from outrider_doubles.gateway_bench import free_ports, gateway_bench

from outrider_cluster.gateway.json_bounds import MAX_STRUCTURES, check_amount
from outrider_cluster.gateway.openai_models import MAX_MESSAGES, ChatBody, CompletionBody
from outrider_runtime.errors import InvalidRequest

VALUES = 1 << 19
HELLO = {"role": "user", "content": "hi"}
STRUCTURES = f"{MAX_STRUCTURES} objects, lists and keys"


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ('{"messages":[' + "1," * 1_300_000 + "1]}", f"{VALUES} values"),
        ('{"messages":[' + "{}," * 900_000 + "{}]}", f"{VALUES} values"),
        ('{"messages":[' + "[]," * 300_000 + "[]]}", f"{VALUES} values"),
        ('{"messages":[' + '"",' * 1_300_000 + '""]}', f"{VALUES} values"),
        ('{"messages":[' + "{}," * 100_000 + "{}]}", STRUCTURES),
        ('{"logit_bias":{' + ",".join(f'"{token}":1' for token in range(200_000)) + "}}", STRUCTURES),
        ("[" * 100_000, STRUCTURES),
    ],
    ids=lambda value: value[:20],
)
def test_a_body_of_too_many_values_is_refused_unparsed(body: str, found: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        check_amount(body.encode(), VALUES)
    assert (refused.value.field, str(refused.value.value)) == ("body", f"more than {found}")


@pytest.mark.parametrize(
    "body",
    [
        {"prompt": [49151] * 300_000},
        {"prompt": [[7] * 8192] * 32},
        {"prompt": "[{,:" * 1_000_000},
        {"prompt": '\\"[{,:' * 400_000},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}] * 2}] * 4096},
        {"messages": [HELLO], "guided_json": {"enum": [{}] * 21_000}},
        {"messages": [HELLO], "allowed_token_ids": list(range(262_144))},
    ],
    ids=lambda body: json.dumps(body)[:40],
)
def test_a_legal_body_is_not_refused_for_its_amount(body: dict[str, object]) -> None:
    check_amount(json.dumps(body).encode(), VALUES)


@pytest.mark.parametrize(
    ("fields", "field", "most"),
    [
        ({"messages": [HELLO] * (MAX_MESSAGES + 1)}, "messages", MAX_MESSAGES),
        ({"stop": ["a"] * 17}, "stop", 16),
        ({"stop_token_ids": [1] * 65}, "stop_token_ids", 64),
        ({"bad_words": ["a"] * 129}, "bad_words", 128),
        ({"guided_choice": ["a"] * 1025}, "guided_choice", 1024),
        ({"structured_outputs": {"choice": ["a"] * 1025}}, "structured_outputs.choice", 1024),
        ({"logit_bias": {str(token): "x" for token in range(301)}}, "logit_bias", 300),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_list_beyond_its_bound_is_refused_by_its_length_alone(
    fields: dict[str, object], field: str, most: int
) -> None:
    with pytest.raises(InvalidRequest) as refused:
        ChatBody.parse({"messages": [HELLO], **fields})
    assert (refused.value.field, refused.value.allowed) == (field, f"at most {most} entries")


def test_lists_at_their_bounds_are_accepted() -> None:
    full = {
        "messages": [HELLO] * MAX_MESSAGES,
        "stop": ["a"] * 16,
        "stop_token_ids": [1] * 64,
        "bad_words": ["a"] * 128,
        "logit_bias": {str(token): 1 for token in range(300)},
    }
    assert len(ChatBody.parse(full).messages) == MAX_MESSAGES
    assert CompletionBody.parse({"prompt": [1], "guided_choice": ["a"] * 1024}).guided_choice == ["a"] * 1024


async def test_the_bound_of_a_body_is_a_setting() -> None:
    async with gateway_bench(settings=free_ports(max_body_values=1024)) as bench:
        answer = await bench.http.post("/v1/completions", json={"prompt": [1] * 1100})
        assert answer.status_code == 400
        assert answer.json()["error"]["message"] == (
            "body: got more than 1024 values, allowed: at most 1024 values in one body"
        )
