"""Answers keep their prescribed form at every verified position, whatever is drafted, and end only where complete."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from random import Random

import numpy as np
import pytest
import torch
from outrider_doubles.engine_bench import (
    COMPILER,
    EOS,
    VOCAB_SIZE,
    Collector,
    EngineBench,
    letter,
    toy_settings,
)
from outrider_doubles.scripted_speculator import ScriptedSpeculator
from outrider_doubles.toy_forward import ToyForward

from outrider_kernels.reference import sample_reference
from outrider_runtime.errors import InvalidRequest
from outrider_wire.generation import GenerationRequest
from outrider_wire.sampling import SamplingParams

PROMPT = (3, 4, 5)
FORWARD = ToyForward(VOCAB_SIZE)
FORMS = {
    "regex": SamplingParams(regex="(C[D-K]{2}|E+F)+[X-Z]", max_tokens=24),
    "choices": SamplingParams(choices=("CDEFGHIJ", "CDEFXYZ", "ZZ"), max_tokens=24),
    "long regex": SamplingParams(regex="[C-Z]{7}(AA|[a-h])*", max_tokens=24),
}


def one_by_one(sampling: SamplingParams, seed: int, count: int, output: Sequence[int] = ()) -> list[int]:
    """What plain decoding gives after `output`, by a fresh constraint at every position; the first end included."""
    ids = list(output)
    for _ in range(count):
        constraint = COMPILER.compile(sampling)
        if not constraint.take(ids) or (ids and ids[-1] == EOS):
            break
        bits = np.unpackbits(constraint.masks(()).view(np.uint8), bitorder="little")[:VOCAB_SIZE]
        logits = torch.from_numpy(np.where(bits, FORWARD.law([*PROMPT, *ids]), -np.inf).astype(np.float32))
        filters = (sampling.temperature, sampling.top_k, sampling.top_p, sampling.min_p)
        ids.append(sample_reference(logits, *filters, seed, len(PROMPT) + len(ids)))
    return ids[len(output) :]


def answered(sampling: SamplingParams, seed: int, speculator: ScriptedSpeculator | None, depth: int = 6) -> Collector:
    bench = EngineBench(toy_settings(), speculator, depth)
    answer = bench.submit(GenerationRequest(prompt_token_ids=PROMPT, sampling=sampling), seed)
    bench.run()
    assert answer.error is None and bench.engine.kv_usage == 0
    return answer


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("name", FORMS)
def test_right_wrong_and_no_drafts_give_the_tokens_of_one_by_one_decoding(name: str, temperature: float) -> None:
    sampling = replace(FORMS[name], temperature=temperature)
    free = replace(sampling, regex=None, choices=())
    for seed in range(4):
        expected = one_by_one(sampling, seed, 24)
        assert answered(sampling, seed, None, 0).token_ids == expected
        right = ScriptedSpeculator(lambda ids, k, s=seed: one_by_one(sampling, s, k, ids[3:]), Random(seed))  # type: ignore[misc]
        assert answered(sampling, seed, right).token_ids == expected
        assert sum(verdict.accepted for verdict in right.verdicts) > 0
        half = Random(seed)

        def half_right(ids: Sequence[int], k: int, s: int = seed, random: Random = half) -> list[int]:
            known = one_by_one(sampling, s, k, ids[3:])
            return [t if random.random() < 0.7 else random.randrange(VOCAB_SIZE) for t in known] + [EOS, 7]

        assert answered(sampling, seed, ScriptedSpeculator(half_right, half, 0.8)).token_ids == expected
        assert free.regex is None


@pytest.mark.parametrize("name", FORMS)
def test_a_finished_answer_has_the_form_and_an_unfinished_one_ended_at_its_limit(name: str) -> None:
    sampling = replace(FORMS[name], temperature=1.0)
    whole = re.compile(sampling.regex or "|".join(sampling.choices))
    ended = 0
    for seed in range(12):
        answer = answered(sampling, seed, None, 0)
        text = "".join(letter(token) for token in answer.token_ids if token != EOS)
        if answer.token_ids[-1] == EOS:
            ended += 1
            assert whole.fullmatch(text)
            assert answer.text == text
        else:
            assert len(answer.token_ids) == 24
    assert ended > 0


def test_proposals_are_cut_before_the_first_illegal_id_and_before_an_end() -> None:
    forward = ToyForward(VOCAB_SIZE)
    c, d, x = (ord(character) - ord("A") for character in "CDX")
    speculator = ScriptedSpeculator(lambda ids, k: [c, d, x, EOS, c] if len(ids) == 3 + 1 else [x], Random(0))
    bench = EngineBench(toy_settings(), speculator, 5, forward)
    sampling = SamplingParams(regex="CCDX", max_tokens=8)
    answer = bench.submit(GenerationRequest(prompt_token_ids=PROMPT, sampling=sampling), 0)
    bench.run()
    assert answer.token_ids == [c, c, d, x, EOS]
    assert forward.batch_sizes == [3, 4], "three legal proposals beside the committed id; the end and what follows not"
    (verdict,) = speculator.verdicts
    assert (verdict.proposed, verdict.accepted) == (3, 3)


def test_a_form_and_other_rules_that_leave_nothing_fail_alone_and_drafts_change_nothing_about_it() -> None:
    c, d = 2, 3
    sampling = SamplingParams(regex="CD[EF]", max_tokens=8, bad_word_ids=((4,), (5,)))
    for depth in (0, 4):
        bench = EngineBench(toy_settings(), ScriptedSpeculator(lambda ids, k: [d, 4], Random(0)), depth)
        stuck = bench.submit(GenerationRequest(prompt_token_ids=PROMPT, sampling=sampling), 0)
        saved = bench.submit(
            GenerationRequest(prompt_token_ids=PROMPT, sampling=replace(sampling, stop_token_ids=(d,))), 0
        )
        bench.run()
        assert isinstance(stuck.error, InvalidRequest) and stuck.token_ids == [c, d]
        assert stuck.error.field == "bad_word_ids"
        assert saved.error is None and saved.token_ids == [c, d]


def test_an_answer_resumed_from_committed_ids_goes_on_within_its_form() -> None:
    sampling = FORMS["long regex"]
    expected = one_by_one(sampling, 5, 24)
    for given in (1, 4, 8):
        bench = EngineBench(toy_settings())
        request = GenerationRequest(
            prompt_token_ids=PROMPT, sampling=sampling, committed_token_ids=tuple(expected[:given])
        )
        answer = bench.submit(request, 5)
        bench.run()
        assert answer.token_ids == expected[given:]
    with pytest.raises(InvalidRequest, match="committed_token_ids"):
        bench.submit(replace(request, committed_token_ids=(0,)), 5)


@pytest.mark.parametrize(
    ("fields", "field"),
    [({"allowed_token_ids": (2,)}, "allowed_token_ids"), ({"allowed_token_ids": (2, 3)}, "allowed_token_ids")],
)
def test_a_form_and_allowed_ids_that_leave_nothing_are_the_requests_fault(
    fields: dict[str, tuple[int, ...]], field: str
) -> None:
    bench = EngineBench(toy_settings())
    sampling = SamplingParams(regex="CD[EF]", max_tokens=8, **fields)  # type: ignore[arg-type]
    answer = bench.submit(GenerationRequest(prompt_token_ids=PROMPT, sampling=sampling), 0)
    bench.run()
    assert isinstance(answer.error, InvalidRequest) and answer.error.field == field
