"""Where acceptance is pretended, every response and chunk says so; elsewhere the rule stands in the statistics."""

import json

from outrider_doubles.gateway_bench import MODEL, gateway_bench

MARK = {"rejection_sample_method": "synthetic"}
BODY = {"model": MODEL, "prompt": "ab", "max_tokens": 4}


async def test_whole_responses_are_marked_also_where_they_have_no_statistics() -> None:
    async with gateway_bench(is_synthetic=True) as bench:
        assert (await bench.http.post("/v1/completions", json={**BODY, "n": 2})).json()["outrider"] == MARK
        chat = {"model": MODEL, "messages": [{"role": "user", "content": "ab"}], "n": 2}
        assert (await bench.http.post("/v1/chat/completions", json=chat)).json()["outrider"] == MARK


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
        answer = (await bench.http.post("/v1/completions", json=BODY)).json()
        assert answer["outrider"]["rejection_sample_method"] == "coupled"
        two = (await bench.http.post("/v1/completions", json={**BODY, "n": 2})).json()
        assert "outrider" not in two
