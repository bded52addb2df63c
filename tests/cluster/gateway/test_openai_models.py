from __future__ import annotations

import pytest

from outrider_cluster.gateway.completions import prompts_of
from outrider_cluster.gateway.errors import UnknownParameter, UnsupportedParameter
from outrider_cluster.gateway.openai_models import ChatBody, CompletionBody
from outrider_runtime.errors import InvalidRequest

MESSAGES = [{"role": "user", "content": "hi"}]


def chat(**fields: object) -> ChatBody:
    return ChatBody.parse({"messages": MESSAGES, **fields})


def test_an_empty_wish_means_openais_defaults() -> None:
    sampling = chat().sampling(default_max_tokens=None)
    assert (sampling.temperature, sampling.top_p, sampling.top_k, sampling.n) == (1.0, 1.0, 0, 1)
    assert (sampling.max_tokens, sampling.seed, sampling.stop) == (None, None, ())


def test_null_means_absent() -> None:
    fields = ["stream", "n", "seed", "max_tokens", "temperature", "top_p", "top_k", "min_p", "stop", "speculation"]
    assert chat(**dict.fromkeys(fields)) == chat()


def test_vllms_minus_one_and_openais_zero_both_switch_top_k_off() -> None:
    assert chat(top_k=-1).sampling(None).top_k == chat(top_k=0).sampling(None).top_k == 0
    assert chat(top_k=7).sampling(None).top_k == 7


def test_a_zero_is_not_taken_for_absent() -> None:
    sampling = chat(temperature=0, seed=0, max_tokens=0, n=0).sampling(5)
    assert (sampling.temperature, sampling.seed, sampling.max_tokens, sampling.n) == (0.0, 0, 0, 0)


def test_penalties_bias_and_masks_become_domain_words() -> None:
    fields = {"presence_penalty": 0.5, "frequency_penalty": -1, "repetition_penalty": 1.1, "min_tokens": 4}
    lists = {"logit_bias": {"7": -3, "0": 2.5}, "allowed_token_ids": [1, 2], "bad_words": ["a", "b c"]}
    sampling = chat(**fields, **lists).sampling(None)
    assert {name: getattr(sampling, name) for name in fields} == fields
    assert (sampling.logit_bias, sampling.allowed_token_ids) == ({7: -3.0, 0: 2.5}, (1, 2))
    assert (sampling.bad_words, sampling.bad_word_ids) == (("a", "b c"), ())
    assert chat(**dict.fromkeys([*fields, *lists])).sampling(None) == chat().sampling(None)


def test_both_apis_ask_for_logprobs_in_their_own_way() -> None:
    assert chat().sampling(None).logprobs is chat(logprobs=False, top_logprobs=0).sampling(None).logprobs is None
    assert chat(logprobs=True).sampling(None).logprobs == 0
    assert chat(logprobs=True, top_logprobs=3).sampling(None).logprobs == 3
    wishes = [CompletionBody.parse({"prompt": "x", "logprobs": wish}).sampling(1).logprobs for wish in (None, 0, 5)]
    assert wishes == [None, 0, 5]


def test_top_logprobs_without_logprobs_are_refused() -> None:
    with pytest.raises(InvalidRequest, match="logprobs: true") as refusal:
        chat(top_logprobs=3)
    assert refusal.value.field == "top_logprobs"


@pytest.mark.parametrize("bias", [{"x": 1}, {"-1": 1}, {"1": 0, "01": 1}, {"1" * 12: 1}, {"": 1}, {"٣": 1}])
def test_a_bias_by_anything_but_ids_is_refused(bias: dict[str, float]) -> None:
    with pytest.raises(InvalidRequest, match="token ids in decimal"):
        chat(logit_bias=bias).sampling(None)


def test_a_list_that_allows_nothing_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="at least 1 id"):
        chat(allowed_token_ids=[]).sampling(None)


def test_stop_may_be_one_text_or_several() -> None:
    assert chat(stop="a").sampling(None).stop == ("a",)
    assert chat(stop=["a", "b"]).sampling(None).stop == ("a", "b")


def test_fields_that_change_nothing_are_accepted() -> None:
    chat(user="u", metadata={"a": "b"}, store=False, safety_identifier="x", service_tier="auto", logprobs=False)
    chat(presence_penalty=0, frequency_penalty=0.0, logit_bias={}, tools=[], tool_choice="none")
    chat(response_format={"type": "text"}, repetition_penalty=1.0)


def test_parts_of_text_are_joined_and_a_developer_speaks_as_system() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    body = chat(messages=[{"role": "developer", "content": parts}])
    assert body.messages[0].for_template() == {"role": "system", "content": "a\nb"}


@pytest.mark.parametrize(
    ("fields", "param", "says"),
    [
        ({"temprature": 1}, "temprature", 'did you mean "temperature"'),
        ({"speculation": {"max_dept": 1}}, "speculation.max_dept", 'did you mean "max_depth"'),
        ({"stream_options": {"include_usge": True}}, "stream_options.include_usge", "include_usage"),
        ({"messages": [{"role": "user", "content": "x", "contnt": 1}]}, "messages[0].contnt", "content"),
    ],
)
def test_an_unknown_key_is_refused_with_its_path_and_the_nearest_known_one(
    fields: dict[str, object], param: str, says: str
) -> None:
    with pytest.raises(UnknownParameter) as refusal:
        chat(**fields)
    assert refusal.value.field == param
    assert says in str(refusal.value)


@pytest.mark.parametrize(
    ("param", "value"),
    [
        ("length_penalty", 0.5),
        ("use_beam_search", True),
        ("tools", [{"type": "function"}]),
        ("tool_choice", "required"),
        ("functions", [{}]),
        ("guided_grammar", "start: /a/"),
        ("cache_salt", "x"),
        ("best_of", 2),
        ("prediction", {"type": "content", "content": "x"}),
        ("chat_template", "x"),
    ],
)
def test_what_is_not_served_is_refused_by_name_and_never_ignored(param: str, value: object) -> None:
    with pytest.raises(UnsupportedParameter) as refusal:
        chat(**{param: value})
    assert refusal.value.field == param


@pytest.mark.parametrize(("param", "value"), [("echo", True), ("suffix", "x"), ("best_of", 2)])
def test_completions_refuse_what_only_they_know(param: str, value: object) -> None:
    with pytest.raises(UnsupportedParameter) as refusal:
        CompletionBody.parse({"prompt": "x", param: value})
    assert refusal.value.field == param


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"temperature": "1"}, "temperature"),
        ({"n": 1.5}, "n"),
        ({"n": True}, "n"),
        ({"stream": 1}, "stream"),
        ({"stop": [1]}, "stop[0]"),
        ({"stop": {}}, "stop"),
        ({"stop_token_ids": ["1"]}, "stop_token_ids[0]"),
        ({"seed": 1.0}, "seed"),
        ({"speculation": 3}, "speculation"),
        ({"logit_bias": {"1": "x"}}, "logit_bias.1"),
        ({"messages": "hi"}, "messages"),
        ({"messages": [{"role": "robot", "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "user"}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": 3}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]}, "messages[0].content"),
    ],
)
def test_a_value_of_the_wrong_type_is_refused_with_its_path(fields: dict[str, object], param: str) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        chat(**fields)
    assert refusal.value.field == param


def test_two_limits_that_differ_are_refused() -> None:
    assert chat(max_tokens=3, max_completion_tokens=3).max_tokens == 3
    with pytest.raises(InvalidRequest, match="max_completion_tokens"):
        chat(max_tokens=3, max_completion_tokens=4)


def test_prompts_come_in_openais_four_forms() -> None:
    assert list(prompts_of("a", 4)) == ["a"]
    assert list(prompts_of(["a", "b"], 4)) == ["a", "b"]
    assert list(prompts_of([1, 2], 4)) == [(1, 2)]
    assert list(prompts_of([[1], [2, 3]], 4)) == [(1,), (2, 3)]


@pytest.mark.parametrize("value", [None, 3, {}, [], [1, "a"], ["a", [1]], [True], [1.0], [None], ["a"] * 5])
def test_prompts_of_another_form_or_too_many_are_refused(value: object) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        prompts_of(value, 4)
    assert refusal.value.field == "prompt"
