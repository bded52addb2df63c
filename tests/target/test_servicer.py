"""The target's GenerateService over real gRPC, with a toy model."""

import asyncio
from dataclasses import replace

import pytest
from outrider_doubles.engine_bench import VOCAB_SIZE, expected_ids, letter, toy_settings
from outrider_doubles.served_engine import served_engine
from outrider_doubles.toy_forward import ToyForward

from outrider_runtime.errors import DeadlineExceeded, InvalidRequest, UnknownModel
from outrider_target.drafting.without_drafts import WithoutDrafts
from outrider_target.engine_thread import EngineThread
from outrider_target.servicer import AsyncSink
from outrider_wire.generation import GenerationDelta, GenerationRequest, RoundReport
from outrider_wire.sampling import SamplingParams

SAMPLING = SamplingParams(temperature=1.0, seed=7, max_tokens=40, ignore_eos=True)
REQUEST = GenerationRequest(prompt_token_ids=(3, 4, 5), sampling=SAMPLING)
ENDLESS = replace(REQUEST, sampling=replace(SAMPLING, max_tokens=100_000))
LONG = toy_settings(max_model_len=120_000, blocks=8_000)


async def test_an_answer_streams_the_ids_and_text_of_the_law() -> None:
    async with served_engine(toy_settings(), ToyForward(VOCAB_SIZE), WithoutDrafts(), 0) as served:
        deltas = [delta async for delta in served.client.generate(REQUEST)]
        ids = [token for delta in deltas for token in delta.token_ids]
        assert ids == expected_ids(served.forward, (3, 4, 5), SAMPLING, 7, 40)
        assert "".join(delta.text for delta in deltas) == "".join(map(letter, ids))
        finished = deltas[-1].finished
        assert finished is not None and finished.seed == 7 and finished.completion_tokens == 40


async def test_a_request_without_a_seed_reports_one_that_replays_it() -> None:
    async with served_engine(toy_settings(), ToyForward(VOCAB_SIZE), WithoutDrafts(), 0) as served:
        unseeded = replace(REQUEST, sampling=replace(SAMPLING, seed=None))
        first = [delta async for delta in served.client.generate(unseeded)]
        finished = first[-1].finished
        assert finished is not None and 0 <= finished.seed < 2**53
        replay = replace(REQUEST, sampling=replace(SAMPLING, seed=finished.seed))
        second = [delta async for delta in served.client.generate(replay)]
        assert joined(first) == joined(second)


def joined(deltas: list[GenerationDelta]) -> list[int]:
    return [token for delta in deltas for token in delta.token_ids]


async def test_what_came_before_an_error_is_seen_before_it_however_late_the_reader() -> None:
    sink = AsyncSink()
    sink.put(GenerationDelta(token_ids=(1, 2), text="ab"))
    sink.put(GenerationDelta(token_ids=(3,), text="c"))
    sink.fail(InvalidRequest("structured_outputs", "x", "a form that can be gone on with"))
    assert joined([await sink.next()]) == [1, 2, 3]
    for _ in range(2):
        with pytest.raises(InvalidRequest, match="structured_outputs"):
            await sink.next()


async def test_reports_of_rounds_are_not_lost_where_pieces_pile_up() -> None:
    sink = AsyncSink()
    reports = [None, None, RoundReport("ngram", 4, 2), RoundReport("suffix", 3, 1), None, RoundReport("ngram", 2, 2)]
    for token, report in enumerate(reports):
        sink.put(GenerationDelta(token_ids=(token,), text=letter(token), round=report))
    seen = [await sink.next() for _ in range(5)]
    assert [delta.token_ids for delta in seen] == [(0, 1), (2,), (3,), (4,), (5,)]
    assert [delta.round for delta in seen] == [None, reports[2], reports[3], None, reports[5]]
    late = asyncio.ensure_future(sink.next())
    await asyncio.sleep(0)
    assert not late.done(), "a piece came twice"
    sink.put(GenerationDelta(token_ids=(6,)))
    assert joined([await late]) == [6]


async def test_bad_words_must_come_as_ids() -> None:
    async with served_engine(toy_settings(), ToyForward(VOCAB_SIZE), WithoutDrafts(), 0) as served:
        worded = replace(REQUEST, sampling=replace(SAMPLING, bad_words=("no",)))
        with pytest.raises(InvalidRequest, match="bad_word_ids"):
            _ = [delta async for delta in served.client.generate(worded)]
        masked = replace(SAMPLING, bad_word_ids=((4,), (7, 8)), frequency_penalty=0.5, logit_bias={9: 1.0})
        deltas = [delta async for delta in served.client.generate(replace(REQUEST, sampling=masked))]
        assert joined(deltas) == expected_ids(served.forward, (3, 4, 5), masked, 7, 40)


async def test_leaving_early_frees_everything() -> None:
    async with served_engine(LONG, ToyForward(VOCAB_SIZE), WithoutDrafts(), 0) as served:
        answer = served.client.generate(ENDLESS)
        assert (await anext(answer)).token_ids
        await answer.aclose()
        async with asyncio.timeout(30):
            await served.until_idle()
        assert served.engine.num_running == 0


async def test_a_client_that_vanishes_frees_everything() -> None:
    async with served_engine(LONG, ToyForward(VOCAB_SIZE), WithoutDrafts(), 0) as served:
        answer = served.client.generate(ENDLESS)
        assert (await anext(answer)).token_ids
        await served.channel.close()
        async with asyncio.timeout(30):
            await served.until_idle()
        assert served.engine.num_running == 0


async def test_the_deadline_ends_the_call_and_frees_everything() -> None:
    async with served_engine(LONG, ToyForward(VOCAB_SIZE), WithoutDrafts(), 0) as served:
        with pytest.raises(DeadlineExceeded):
            async for _ in served.client.generate(ENDLESS, timeout_s=0.3):
                pass
        async with asyncio.timeout(30):
            await served.until_idle()
        assert served.engine.num_running == 0


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"prompt_token_ids": None, "prompt_text": "words"}, "prompt"),
        ({"prompt_token_ids": (3, VOCAB_SIZE)}, "prompt[1]"),
        ({"prompt_token_ids": (3, -1)}, "prompt[1]"),
        ({"prompt_token_ids": ()}, "prompt"),
        ({"prompt_token_ids": (3,) * 128}, "prompt"),
        ({"sampling": replace(SAMPLING, n=2)}, "sampling.n"),
        ({"sampling": replace(SAMPLING, temperature=float("nan"))}, "temperature"),
        ({"sampling": replace(SAMPLING, max_tokens=126)}, "max_tokens"),
        ({"committed_token_ids": (VOCAB_SIZE,)}, "committed_token_ids[0]"),
    ],
)
async def test_a_request_outside_its_bounds_is_refused_by_field_while_others_go_on(
    change: dict[str, object], field: str
) -> None:
    async with served_engine(toy_settings(), ToyForward(VOCAB_SIZE), WithoutDrafts(), 0) as served:
        beside = served.client.generate(REQUEST)
        first = await anext(beside)
        with pytest.raises(InvalidRequest) as refusal:
            async for _ in served.client.generate(replace(REQUEST, **change)):  # type: ignore[arg-type]
                pass
        assert refusal.value.field == field
        ids = joined([first, *[delta async for delta in beside]])
        assert ids == expected_ids(served.forward, (3, 4, 5), SAMPLING, 7, 40)


async def test_another_model_is_not_found() -> None:
    async with served_engine(toy_settings(), ToyForward(VOCAB_SIZE), WithoutDrafts(), 0) as served:
        with pytest.raises(UnknownModel, match="served: toy"):
            async for _ in served.client.generate(replace(REQUEST, model="other")):
                pass


def test_what_goes_wrong_while_building_is_raised_where_the_thread_is_started() -> None:
    def build() -> None:
        raise MemoryError("no room")

    with pytest.raises(MemoryError, match="no room"):
        EngineThread(build).start()  # type: ignore[arg-type]
