"""Keys of draft pools: vLLM's rules for lookup bounds, and refusals that say what is wrong."""

from __future__ import annotations

import json

import pytest

from outrider_draft.config import LookupBounds, NgramPoolSettings
from outrider_draft.identity import WorkerIdentity
from outrider_draft.methods import METHODS, make_proposer, parse_pool
from outrider_draft.ngram_proposer import NgramProposer
from outrider_runtime.errors import InvalidConfig


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({}, (5, 5)),  # both absent
        ({"prompt_lookup_min": 2}, (2, 2)),  # one absent mirrors the other
        ({"prompt_lookup_max": 7}, (7, 7)),
        ({"prompt_lookup_min": 2, "prompt_lookup_max": 4}, (2, 4)),
        ({"prompt_lookup_min": 3, "prompt_lookup_max": 3}, (3, 3)),
    ],
)
def test_absent_lookup_bounds_follow_vllms_rules(keys: dict[str, int], expected: tuple[int, int]) -> None:
    settings = parse_pool({"name": "ngram", "method": "ngram", **keys})
    assert isinstance(settings, NgramPoolSettings)
    assert settings.lookup == LookupBounds(*expected)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"prompt_lookup_min": 6, "prompt_lookup_max": 3}, ("prompt_lookup_min 6", "prompt_lookup_max 3")),
        ({"prompt_lookup_min": 0}, ("prompt_lookup_min", "greater than or equal to 1", "got 0")),
        ({"prompt_lookup_max": -1}, ("prompt_lookup_max", "got -1")),
        ({"num_speculative_tokens": 0}, ("num_speculative_tokens", "got 0")),
        ({"num_speculative_tokens": 65}, ("num_speculative_tokens", "64", "got 65")),
        ({"replicas": -1}, ("replicas", "got -1")),
        ({"max_sessions": 0}, ("max_sessions", "got 0")),
        ({"max_memory_bytes": "lots"}, ("max_memory_bytes", "512MiB", '"lots"')),
        ({"name": "Not A Name"}, ("name", '"Not A Name"')),
        ({"prompt_lookup_mni": 2}, ("prompt_lookup_mni", "not permitted")),
    ],
)
def test_a_key_out_of_bounds_is_refused_by_name_and_value(keys: dict[str, object], words: tuple[str, ...]) -> None:
    with pytest.raises(InvalidConfig) as caught:
        parse_pool({"name": "ngram", "method": "ngram", **keys})
    assert all(word in str(caught.value) for word in words)


@pytest.mark.parametrize("method", ["nggram", "", 7, None, ["ngram"]])
def test_an_unknown_method_is_refused_with_those_that_exist(method: object) -> None:
    with pytest.raises(InvalidConfig) as caught:
        parse_pool({"name": "p", "method": method})
    assert json.dumps(method) in str(caught.value)
    assert all(known in str(caught.value) for known in METHODS)


def test_memory_may_be_written_with_a_unit() -> None:
    assert parse_pool({"name": "p", "method": "ngram", "max_memory_bytes": "2MiB"}).max_memory_bytes == 2 << 20


def test_a_method_makes_its_proposer() -> None:
    pool = parse_pool({"name": "p", "method": "ngram"})
    assert isinstance(make_proposer(pool, WorkerIdentity("f" * 64, 1000)), NgramProposer)


def test_every_method_is_listed_under_the_name_that_its_settings_have() -> None:
    for name, method in METHODS.items():
        assert method.settings.model_fields["method"].default == name
