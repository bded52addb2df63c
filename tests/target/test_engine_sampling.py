"""Penalties, bias and masks act at every verified position as if decoded one by one, whatever is drafted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pytest
from outrider_doubles.engine_bench import EOS, VOCAB_SIZE, EngineBench, expected_ids, letter, toy_settings
from outrider_doubles.scripted_speculator import ScriptedSpeculator
from outrider_doubles.toy_forward import ToyForward

from outrider_runtime.errors import InvalidRequest
from outrider_wire.generation import GenerationRequest
from outrider_wire.sampling import SamplingParams

PROMPT = (3, 4, 5)
PLAIN = SamplingParams(max_tokens=24, ignore_eos=True)
FORWARD = ToyForward(VOCAB_SIZE)
GREEDY = expected_ids(FORWARD, PROMPT, PLAIN, 0, 24)


def drafted(sampling: SamplingParams, drafts: SamplingParams, seed: int = 0, depth: int = 6) -> list[int]:
    """Ids of an engine whose drafts are what `drafts` would decode; every proposal must have been used somewhere."""
    speculator = ScriptedSpeculator(
        lambda ids, k: expected_ids(FORWARD, PROMPT, drafts, seed, k, ids[len(PROMPT) :]), Random(0)
    )
    bench = EngineBench(toy_settings(), speculator, depth)
    answer = bench.submit(GenerationRequest(prompt_token_ids=PROMPT, sampling=sampling), seed)
    bench.run()
    assert answer.error is None and any(verdict.accepted for verdict in speculator.verdicts)
    return answer.token_ids


CHANGES: dict[str, dict[str, object]] = {
    "presence": {"presence_penalty": 1.5},
    "negative presence": {"presence_penalty": -2.0},
    "frequency": {"frequency_penalty": 0.8},
    "negative frequency": {"frequency_penalty": -0.6},
    "repetition": {"repetition_penalty": 1.7},
    "rewarded repetition": {"repetition_penalty": 0.6},
    "bias": {"logit_bias": {GREEDY[0]: -100.0, 7: 2.5}},
    "allowed": {"allowed_token_ids": (2, 9, 11, 12, 30)},
    "banned id": {"bad_word_ids": ((GREEDY[2],),)},
    "bad word inside a run": {"bad_word_ids": (tuple(GREEDY[2:5]), tuple(GREEDY[4:6]))},
    "min tokens": {"min_tokens": 5, "stop_token_ids": (GREEDY[1], GREEDY[3])},
    "all at once": {
        "presence_penalty": 0.4,
        "frequency_penalty": 0.3,
        "repetition_penalty": 1.2,
        "logit_bias": {5: 1.0},
        "bad_word_ids": (tuple(GREEDY[:2]),),
        "min_tokens": 20,
        "allowed_token_ids": tuple(range(2, 38)),
    },
}


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("name", CHANGES)
def test_drafts_with_and_without_the_change_give_the_tokens_of_one_by_one_decoding(
    name: str, temperature: float
) -> None:
    sampling = replace(PLAIN, temperature=temperature, min_p=0.01, **CHANGES[name])  # type: ignore[arg-type]
    expected = expected_ids(FORWARD, PROMPT, sampling, 3, 24)
    ends = [place for place, token in enumerate(expected) if token in sampling.stop_token_ids]
    expected = expected[: ends[0] + 1] if ends else expected
    # Right drafts are accepted whole, across every boundary; drafts of the unchanged law break off at it.
    assert drafted(sampling, sampling, seed=3) == expected
    plain = replace(PLAIN, temperature=temperature, min_p=0.01)
    assert drafted(sampling, plain, seed=3, depth=2) == expected
    if temperature == 0:
        assert expected != GREEDY[: len(expected)], "the change must matter"


def test_repeated_ids_inside_one_run_are_counted_one_by_one() -> None:
    sampling = replace(PLAIN, logit_bias={7: 6.0}, frequency_penalty=1.1)
    expected = expected_ids(FORWARD, PROMPT, sampling, 0, 24)
    assert 2 <= expected[:7].count(7) < 7, "the arg-max must change in the middle of a run"
    assert drafted(sampling, sampling) == expected


def test_rejected_proposals_are_never_counted() -> None:
    sampling = replace(PLAIN, presence_penalty=2.0, frequency_penalty=2.0)
    expected = expected_ids(FORWARD, PROMPT, sampling, 0, 24)

    def first_right_then_wrong(ids: Sequence[int], depth: int) -> list[int]:
        right = expected_ids(FORWARD, PROMPT, sampling, 0, depth, ids[len(PROMPT) :])
        return [right[0], *((token + 1) % VOCAB_SIZE for token in right[1:])]

    bench = EngineBench(toy_settings(), ScriptedSpeculator(first_right_then_wrong, Random(0)), 6)
    answer = bench.submit(GenerationRequest(prompt_token_ids=PROMPT, sampling=sampling), 0)
    bench.run()
    assert answer.token_ids == expected


@pytest.mark.parametrize("least", range(1, 9))
def test_no_end_comes_before_min_tokens_wherever_a_run_crosses_it(least: int) -> None:
    endless = replace(PLAIN, logit_bias={EOS: 50.0}, ignore_eos=False, min_tokens=least)
    ids = drafted(endless, endless, depth=6) if least > 1 else None
    bench = EngineBench(toy_settings())
    answer = bench.submit(GenerationRequest(prompt_token_ids=PROMPT, sampling=endless), 0)
    bench.run()
    assert len(answer.token_ids) == least + 1 and answer.token_ids.index(EOS) == least
    assert ids is None or ids == answer.token_ids


def test_stop_strings_count_for_nothing_until_min_tokens() -> None:
    text = "".join(map(letter, GREEDY))
    for least in (0, 2, 3, 9):
        bench = EngineBench(toy_settings())
        sampling = replace(PLAIN, stop=(text[1:3], text[6:8], text[7]), min_tokens=least)
        answer = bench.submit(GenerationRequest(prompt_token_ids=PROMPT, sampling=sampling), 0)
        bench.run()
        ends = [end for end in range(1, 25) if end > least and text[:end].endswith(sampling.stop)]
        assert answer.token_ids == GREEDY[: min(ends, default=24)]


def test_an_answer_resumed_from_committed_ids_counts_them_as_output() -> None:
    sampling = replace(PLAIN, frequency_penalty=0.9, bad_word_ids=((GREEDY[1], GREEDY[2]),), min_tokens=9)
    whole = expected_ids(FORWARD, PROMPT, sampling, 0, 24)
    for given in (1, 2, 5, 12):
        bench = EngineBench(toy_settings())
        request = GenerationRequest(
            prompt_token_ids=PROMPT, sampling=sampling, committed_token_ids=tuple(whole[:given])
        )
        answer = bench.submit(request, 0)
        bench.run()
        assert answer.token_ids == whole[given:]


def test_masks_that_could_leave_nothing_are_refused_before_they_run() -> None:
    bench = EngineBench(toy_settings())
    for masks in (
        {"allowed_token_ids": (7, 8), "bad_word_ids": ((7,), (7, 8))},
        {"allowed_token_ids": (EOS,), "min_tokens": 1},
        {"bad_word_ids": tuple((token,) for token in range(VOCAB_SIZE))},
    ):
        sampling = replace(PLAIN, **masks)  # type: ignore[arg-type]
        with pytest.raises(InvalidRequest, match="allowed_token_ids"):
            bench.submit(GenerationRequest(prompt_token_ids=PROMPT, sampling=sampling), 0)


class OneIdForward(ToyForward):
    """A model that is certain: all logits but one are -inf."""

    def _logits(self, total: int, is_broken: bool):  # type: ignore[no-untyped-def]
        logits = super()._logits(total, is_broken)
        logits[logits < logits.max()] = float("-inf")
        return logits


def test_a_request_that_forbids_all_a_model_allows_fails_alone() -> None:
    bench = EngineBench(toy_settings(), forward=OneIdForward(VOCAB_SIZE))
    sampling = replace(PLAIN, bad_word_ids=((GREEDY[3],),))
    bad = bench.submit(GenerationRequest(prompt_token_ids=PROMPT, sampling=sampling), 0)
    good = bench.submit(GenerationRequest(prompt_token_ids=PROMPT, sampling=PLAIN), 0)
    bench.run()
    assert isinstance(bad.error, InvalidRequest) and bad.error.field == "bad_word_ids"
    assert bad.token_ids == GREEDY[:3] and good.token_ids == GREEDY
    assert bench.engine.kv_usage == 0
