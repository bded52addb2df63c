"""Ends inside an accepted run, cancellation, refusals and broken rows: each touches its own request only."""

from dataclasses import replace
from random import Random

import pytest
from outrider_doubles.engine_bench import EOS, EngineBench, expected_ids, letter, toy_settings
from outrider_doubles.scripted_speculator import ScriptedSpeculator
from outrider_doubles.toy_forward import ToyForward

from outrider_runtime.errors import EngineFailed, InvalidConfig, InvalidRequest, NotReady, Overloaded
from outrider_target.settings import TargetSettings
from outrider_wire.drafting import CloseOutcome
from outrider_wire.generation import FinishReason, GenerationRequest
from outrider_wire.sampling import SamplingParams

PROMPT = (3, 4, 5)
GREEDY = SamplingParams(max_tokens=24, ignore_eos=True)


def bench_with_perfect_drafts(depth: int = 5) -> tuple[EngineBench, ScriptedSpeculator]:
    speculator = ScriptedSpeculator(lambda ids, k: [], Random(0))
    bench = EngineBench(toy_settings(), speculator, depth)
    speculator._proposer = lambda ids, k: expected_ids(bench.forward, ids, GREEDY, 0, k)
    return bench, speculator


def first_at(ids: list[int], at: int) -> int:
    """Index of the first occurrence of the id that stands at `at`."""
    return ids.index(ids[at])


@pytest.mark.parametrize("at", range(12))
def test_a_stop_id_anywhere_in_an_accepted_run_ends_ids_text_usage_and_statistics_together(at: int) -> None:
    bench, speculator = bench_with_perfect_drafts()
    plain = expected_ids(bench.forward, PROMPT, GREEDY, 0, 24)
    end = first_at(plain, at)
    sampling = SamplingParams(max_tokens=24, ignore_eos=True, stop_token_ids=(plain[at],))
    answer = bench.submit(GenerationRequest(prompt_token_ids=PROMPT, sampling=sampling), seed=0)
    bench.run()
    assert answer.token_ids == plain[: end + 1]
    assert answer.text == "".join(map(letter, plain[:end]))
    assert answer.finished is not None
    assert answer.finished.reason is FinishReason.STOP and answer.finished.stop_token_id == plain[at]
    assert answer.finished.completion_tokens == end + 1
    statistics = answer.finished.speculation
    assert statistics.num_accepted_draft_tokens + statistics.num_spec_steps + 1 in {end + 1, end + 2}
    assert speculator.finished_ids[1] == [*PROMPT, *answer.token_ids]


@pytest.mark.parametrize("at", range(1, 12))
def test_a_stop_string_anywhere_in_an_accepted_run_cuts_ids_at_the_token_that_completes_it(at: int) -> None:
    bench, _ = bench_with_perfect_drafts()
    plain = expected_ids(bench.forward, PROMPT, GREEDY, 0, 24)
    text = "".join(map(letter, plain))
    stop = text[at - 1 : at + 1]
    sampling = SamplingParams(max_tokens=24, ignore_eos=True, stop=(stop,))
    answer = bench.submit(GenerationRequest(prompt_token_ids=PROMPT, sampling=sampling), seed=0)
    bench.run()
    cut = text.index(stop)
    assert answer.text == text[:cut]
    assert answer.token_ids == plain[: cut + 2]
    assert answer.finished is not None and answer.finished.stop_string == stop
    assert answer.finished.completion_tokens == cut + 2


def test_the_end_of_sequence_id_ends_an_answer_unless_ignored() -> None:
    bench = EngineBench(toy_settings(max_model_len=2048, blocks=200))
    seed = next(
        seed
        for seed in range(100)
        if EOS in expected_ids(bench.forward, PROMPT, SamplingParams(temperature=2.0), seed, 60)
    )
    sampling = SamplingParams(temperature=2.0, max_tokens=60)
    answer = bench.submit(GenerationRequest(prompt_token_ids=PROMPT, sampling=sampling), seed)
    bench.run()
    plain = expected_ids(bench.forward, PROMPT, sampling, seed, 60)
    assert answer.token_ids == plain[: plain.index(EOS) + 1]
    assert answer.finished is not None and answer.finished.stop_token_id == EOS


def test_without_a_limit_an_answer_ends_at_the_model_length() -> None:
    bench = EngineBench(toy_settings(max_model_len=64))
    answer = bench.submit(GenerationRequest(prompt_token_ids=PROMPT, sampling=SamplingParams(ignore_eos=True)), seed=0)
    bench.run()
    assert len(answer.token_ids) == 64 - len(PROMPT)
    assert answer.finished is not None and answer.finished.reason is FinishReason.LENGTH


@pytest.mark.parametrize("steps", range(8))
def test_a_cancelled_request_is_gone_after_one_step_and_disturbs_nobody(steps: int) -> None:
    other = GenerationRequest(prompt_token_ids=(7, 8), sampling=GREEDY)
    bench, speculator = bench_with_perfect_drafts()
    undisturbed, _ = bench_with_perfect_drafts()
    kept, alone = bench.submit(other, seed=0), undisturbed.submit(other, seed=0)
    longer = replace(GREEDY, max_tokens=60)
    dropped = bench.submit(GenerationRequest(prompt_token_ids=tuple(range(2, 39)), sampling=longer), seed=0)
    for _ in range(steps):
        bench.engine.step()
    assert dropped.finished is None, "there must be something to cancel"
    was_open = 2 in speculator.committed
    told = list(dropped.token_ids)
    bench.engine.cancel(2)
    bench.engine.step()
    while len(alone.token_ids) < len(kept.token_ids):
        undisturbed.engine.step()
    assert bench.engine.num_waiting == 0 and bench.engine.num_running == (kept.finished is None)
    assert bench.engine.kv_usage == undisturbed.engine.kv_usage
    assert speculator.session_count() == bench.engine.num_running
    assert speculator.closed.get(2) is (CloseOutcome.ABORTED if was_open else None)
    bench.run()
    assert kept.token_ids == expected_ids(bench.forward, (7, 8), GREEDY, 0, 24)
    assert dropped.token_ids == told and dropped.finished is None and dropped.error is None
    assert speculator.session_count() == 0 and bench.engine.kv_usage == 0


def test_logits_that_are_not_numbers_fail_their_own_request_only() -> None:
    bench = EngineBench(toy_settings(), forward=ToyForward(40, nan_token_id=39))
    good = [bench.submit(GenerationRequest(prompt_token_ids=(n, 8), sampling=GREEDY), seed=0) for n in (5, 6)]
    bad = bench.submit(GenerationRequest(prompt_token_ids=(7, 39), sampling=GREEDY), seed=0)
    bench.run()
    assert isinstance(bad.error, EngineFailed)
    for n, answer in zip((5, 6), good, strict=True):
        plain = expected_ids(bench.forward, (n, 8), GREEDY, 0, 24)
        assert answer.token_ids == plain if 39 not in plain else answer.error is not None
    assert bench.engine.kv_usage == 0


def test_too_many_waiting_requests_are_refused_and_the_rest_finish() -> None:
    bench = EngineBench(toy_settings(max_num_seqs=1, max_waiting=1))
    request = GenerationRequest(prompt_token_ids=PROMPT, sampling=GREEDY)
    accepted = [bench.submit(request, seed=0) for _ in range(2)]
    with pytest.raises(Overloaded, match="wait already"):
        bench.submit(request, seed=0)
    bench.run()
    assert all(answer.finished is not None for answer in accepted)


def test_a_resumed_answer_with_nothing_left_to_say_is_refused() -> None:
    bench = EngineBench(toy_settings())
    request = GenerationRequest(
        prompt_token_ids=PROMPT, sampling=SamplingParams(max_tokens=2), committed_token_ids=(3, 4)
    )
    with pytest.raises(InvalidRequest, match="committed_token_ids"):
        bench.submit(request, seed=0)


def test_a_cache_budget_below_one_longest_request_is_refused_with_the_size_needed() -> None:
    with pytest.raises(InvalidConfig, match="give at least 1024 bytes or lower max_model_len to 112"):
        EngineBench(toy_settings(blocks=7))


def test_a_failed_engine_ends_every_request_and_refuses_new_ones() -> None:
    bench = EngineBench(toy_settings())
    request = GenerationRequest(prompt_token_ids=PROMPT, sampling=GREEDY)
    running = bench.submit(request, seed=0)
    bench.engine.step()
    queued = bench.submit(request, seed=0)
    bench.engine.fail(RuntimeError("cosmic ray"))
    assert isinstance(running.error, EngineFailed) and isinstance(queued.error, NotReady)
    with pytest.raises(NotReady):
        bench.submit(request, seed=0)


def test_target_settings_name_what_they_refuse() -> None:
    with pytest.raises(ValueError, match="kv_cache_memory_bytes"):
        TargetSettings.model_validate({"kv_cache_memory_bytes": "lots"})
