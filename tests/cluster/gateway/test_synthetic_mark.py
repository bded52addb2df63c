"""Where acceptance is pretended, every response and chunk says so; elsewhere the rule stands in the statistics."""

import json
from dataclasses import replace

import pytest
from outrider_doubles.gateway_bench import MODEL, gateway_bench
from outrider_doubles.scripted_target import STATISTICS

from outrider_wire.generation import RejectionSampleMethod

MARK = {"rejection_sample_method": "synthetic"}
BODY = {"model": MODEL, "prompt": "ab", "max_tokens": 4}
CHAT = {"model": MODEL, "messages": [{"role": "user", "content": "ab"}]}


@pytest.mark.parametrize("choices", [1, 2])
async def test_whole_responses_name_the_rule_that_their_target_went_by(choices: int) -> None:
    async with gateway_bench(is_synthetic=True) as bench:
        bench.targets[0].statistics = replace(STATISTICS, rejection_sample_method=RejectionSampleMethod.SYNTHETIC)
        for path, asked in (("completions", BODY), ("chat/completions", CHAT)):
            answer = (await bench.http.post(f"/v1/{path}", json={**asked, "n": choices})).json()
            assert answer["outrider"].items() >= MARK.items()


async def test_every_chunk_of_a_stream_is_marked() -> None:
    async with gateway_bench(is_synthetic=True) as bench:
        text = (await bench.http.post("/v1/completions", json={**BODY, "stream": True})).text
        chunks = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")]
        assert chunks and all(chunk["outrider"] == MARK for chunk in chunks)


async def test_a_request_cannot_ask_for_a_rule_of_its_own() -> None:
    async with gateway_bench() as bench:
        refused = await bench.http.post("/v1/completions", json={**BODY, "speculation": MARK})
        assert refused.status_code == 400
        assert "rejection_sample_method" in refused.json()["error"]["message"]
        assert bench.targets[0].requests == []


async def test_real_rules_are_named_in_the_statistics_only() -> None:
    async with gateway_bench() as bench:
        for choices in (1, 2):
            answer = (await bench.http.post("/v1/completions", json={**BODY, "n": choices})).json()
            assert answer["outrider"]["rejection_sample_method"] == "coupled"
        stream = {**BODY, "n": 2, "stream": True}
        assert "outrider" not in (await bench.http.post("/v1/completions", json=stream)).text
