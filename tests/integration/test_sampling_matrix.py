"""Every pair of sampling parameters and proposers, over real gRPC: drafts change nothing of what a client sees."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from outrider_doubles.chaos_checkpoint import write_repetitive_checkpoint
from outrider_doubles.draft_house import House, Outcome, draft_house
from outrider_doubles.pairwise import Case, Pair, all_pairs, pairs_of, possible_pairs
from outrider_doubles.tiny_tokenizer import EOS_ID, ids_of

from outrider_wire.generation import GenerationRequest
from outrider_wire.sampling import SamplingParams, SpeculationOptions

LEAST = 16
"""Ids of the shortest answer: enough for several rounds, and for drafts that are found in the answer itself."""
ALLOWED = (EOS_ID, *ids_of('[]^_`abcdefghiznx12,-"'))
"""So few ids that texts repeat themselves, and n-grams and suffixes find something; all that a form needs."""
BAD_WORDS = (*map(ids_of, ("ab", "-c", ",2")), ids_of("_"))
"""Each has another way on in every form."""
ARRAY = '{"type":"array","items":{"enum":[1,22,"x"]},"minItems":12,"maxItems":14}'
CHOICES = ("face-face-face-face-added", "face-face-cab-cab-cab-added-bed", "bee-bee-bee-bee-bee-dead-end")
"""No d before `min_tokens`, where it would end the answer."""
ENDLESS = (("ignore_eos", True),)
FORMS: tuple[tuple[tuple[str, object], ...], ...] = (
    (("json_schema", ARRAY),),
    (("regex", "([a-f]{3}-){6,}"),),
    (("choices", CHOICES),),
)
FIELDS: dict[str, tuple[Any, ...]] = {
    "proposer": ("ngram", "suffix", "custom", "none"),
    "temperature": (0.0, 0.01, 0.8, 2.0),
    "filters": ((), (("top_k", 3),), (("top_p", 0.7),), (("min_p", 0.1), ("top_k", 8))),
    "penalties": ((), (("repetition_penalty", 1.4),), (("presence_penalty", 0.9), ("frequency_penalty", 0.6))),
    "ids": (
        (),
        (("allowed_token_ids", ALLOWED),),
        (("logit_bias", tuple(zip(ids_of('a"['), (4, 3, 9), strict=True))),),
    ),
    "words": ((), (("bad_word_ids", BAD_WORDS),)),
    "end": (
        (),
        ENDLESS,
        (("stop_token_ids", ids_of("d2")), ("min_tokens", LEAST + 2)),
        (("stop", ("d-", "1,1", "[a", "z")), ("min_tokens", LEAST)),
    ),
    "logprobs": ((), (("logprobs", 2),), (("prompt_logprobs", 1), ("logprobs", 0))),
    "form": ((), *FORMS),
}
CONTRADICTORY: dict[Pair, str] = {
    frozenset({("end", ENDLESS), ("form", form)}): "a complete answer must end, so this is refused" for form in FORMS
}
CASES = all_pairs(FIELDS, Random(0), CONTRADICTORY)
PROMPT = tuple(b % 200 + 3 for b in b"one two one two one two")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_repetitive_checkpoint(tmp_path_factory.mktemp("tiny"))


def request_of(case: Case, seed: int) -> GenerationRequest:
    fields: dict[str, Any] = {"temperature": case["temperature"], "max_tokens": 2 * LEAST, "seed": seed}
    for name in ("filters", "penalties", "ids", "words", "end", "logprobs", "form"):
        fields.update(case[name])  # type: ignore[call-overload]
    fields["logit_bias"] = dict(fields.get("logit_bias", ()))
    pool = str(case["proposer"])
    off = SpeculationOptions(max_depth=0)
    options = off if pool == "none" else SpeculationOptions(pool=pool)
    return GenerationRequest(prompt_token_ids=PROMPT, sampling=SamplingParams(**fields), speculation=options)


def without_drafts(request: GenerationRequest) -> GenerationRequest:
    return replace(request, speculation=SpeculationOptions(max_depth=0))


def drafted_by(pool: str, request: GenerationRequest) -> GenerationRequest:
    return replace(request, speculation=replace(request.speculation, pool=pool))


async def all_outcomes(house: House, requests: list[GenerationRequest]) -> list[Outcome]:
    return list(await asyncio.gather(*map(house.outcome, requests)))


async def hire_all(house: House, known: list[Outcome]) -> None:
    """Draft workers of all kinds; the custom one knows every answer, and others of its beginning."""
    await house.hire("ngram", {"method": "ngram", "prompt_lookup_min": 1, "prompt_lookup_max": 4})
    await house.hire("suffix", {"method": "suffix", "max_corpus_bytes": "1MiB"})
    phrases = [outcome.token_ids for outcome in known if len(outcome.token_ids) > 1]
    custom = {"method": "custom_class", "model": "custom_proposer.Dictionary", "options": {"phrases": phrases}}
    await house.hire("custom", custom)


@pytest.fixture
async def house(model: Path) -> AsyncIterator[House]:
    async with draft_house(model, ("ngram", "suffix", "custom")) as house:
        yield house


def accepted_by_pool(outcomes: Iterable[Outcome]) -> Counter[str]:
    accepted = Counter[str]()
    for outcome in outcomes:
        if outcome.finished is not None:
            accepted.update(outcome.finished.speculation.accepted_by_pool)
    return accepted


def test_the_cases_hold_every_pair_that_is_possible() -> None:
    assert set().union(*map(pairs_of, CASES)) == possible_pairs(FIELDS, CONTRADICTORY)
    assert len(CASES) < 40


async def test_what_is_left_out_of_the_pairs_is_refused(house: House) -> None:
    plain: Case = {name: values[0] for name, values in FIELDS.items()}
    for pair in CONTRADICTORY:
        outcome = await house.outcome(request_of(plain | dict(pair), 0))
        assert outcome.error.startswith("InvalidRequest") and "ignore_eos" in outcome.error


async def test_on_equals_off_for_every_pair_of_parameters_and_proposers(house: House) -> None:
    requests = [request_of(case, seed) for seed, case in enumerate(CASES)]
    expected = [await house.outcome(without_drafts(request)) for request in requests]  # each alone
    for request, outcome in zip(requests, expected, strict=True):
        assert not outcome.error and len(outcome.token_ids) >= LEAST, (request, outcome)
    await hire_all(house, expected)
    accepted = Counter[str]()
    for pool in ("", "ngram", "suffix", "custom"):  # all race, then one alone: the rest may win every race
        outcomes = await all_outcomes(house, [drafted_by(pool, request) for request in requests])
        for request, outcome, single in zip(requests, outcomes, expected, strict=True):
            assert outcome == single, request
        accepted += accepted_by_pool(outcomes)
    assert set(accepted) == {"ngram", "suffix", "custom"}  # only what is above zero is kept


MIXED: tuple[dict[str, Any], ...] = (
    {},
    {"temperature": 1.0},
    {"temperature": 0.01},
    {"temperature": 2.0},
    {"temperature": 1.0, "top_k": 1},
    {"temperature": 0.7, "logprobs": 3, "prompt_logprobs": 2},
    {"temperature": 0.7, "frequency_penalty": 0.8, "repetition_penalty": 1.3},
    {"temperature": 1.0, "json_schema": '{"type":"array","items":{"type":"integer"}}', "ignore_eos": False},
)


async def test_a_mixed_batch_of_32_equals_the_same_requests_alone(house: House) -> None:
    """Requests without a seed are given one; alone, they are asked again with the seed that the answer names."""
    options = [SpeculationOptions(pool=pool) for pool in ("ngram", "suffix", "custom")]
    requests = [
        GenerationRequest(
            prompt_token_ids=PROMPT[: 4 + number % 9],
            sampling=SamplingParams(
                **{"max_tokens": 20, "ignore_eos": True, "seed": number if number % 3 else None, **MIXED[number % 8]}
            ),
            speculation=options[number % 3],
        )
        for number in range(32)
    ]
    await hire_all(house, [])
    outcomes = await all_outcomes(house, requests)
    assert accepted_by_pool(outcomes).total() > 0
    for request, together in zip(requests, outcomes, strict=True):
        assert together.finished is not None, together.error
        seeded = replace(request, sampling=replace(request.sampling, seed=together.finished.seed))
        assert request.sampling.seed in (None, together.finished.seed)
        assert await house.outcome(without_drafts(seeded)) == together


async def test_a_seed_replays_elsewhere_under_load_with_other_proposers_and_after_a_drafter_died(
    house: House, model: Path
) -> None:
    request = GenerationRequest(
        prompt_token_ids=PROMPT,
        sampling=SamplingParams(temperature=0.9, max_tokens=64, ignore_eos=True, frequency_penalty=0.2),
    )
    first = await house.outcome(request)
    assert first.finished is not None
    again = replace(request, sampling=replace(request.sampling, seed=first.finished.seed))
    async with draft_house(model, ("ngram", "suffix", "custom"), depth=3, max_num_batched_tokens=64) as replica:
        assert await replica.outcome(again) == first, "another replica"
        await hire_all(replica, [first])
        accepted = Counter[str]()
        others = [replace(request, prompt_token_ids=PROMPT[at:]) for at in range(1, 9)]
        for pool in ("ngram", "suffix", "custom"):
            drafted = replace(again, speculation=SpeculationOptions(pool=pool))
            crowded = await all_outcomes(replica, [drafted, *others])
            assert crowded[0] == first, f"another load, with {pool}"
            accepted += accepted_by_pool(crowded)
        assert accepted["ngram"] and accepted["custom"]
        asked = asyncio.create_task(replica.outcome(again))
        await replica.dismiss("custom")
        assert await asked == first, "a drafter died"
        assert await replica.outcome(replace(again, speculation=SpeculationOptions(pool="custom"))) == first
