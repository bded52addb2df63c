"""Findings as people read them: each fault once, in plain words; and what is no fault."""

from __future__ import annotations

from typing import Any

import pytest
from outrider_doubles.config_files import changed, findings, good

A0, ARGS = "applications.0", "applications[0].args"


@pytest.mark.parametrize(
    ("change", "value", "text"),
    [
        (
            f"{A0}.args.target.max_num_seqs",
            -3,
            f"{ARGS}.target.max_num_seqs: is too small, got -3, allowed: an integer at least 1, at most 1024",
        ),
        (
            f"{A0}.args.target.kv_cache_memory_bytes",
            "1 gigabyte",
            f'{ARGS}.target.kv_cache_memory_bytes: expected a size such as 512MiB or 1GiB, got "1 gigabyte"',
        ),
        (
            f"{A0}.args.gateway.api_keys",
            "x",
            f"{ARGS}.gateway.api_keys: is of the wrong kind, got <hidden>, allowed: a list, each entry text",
        ),
        (
            f"{A0}.runtime_env",
            3,
            "applications[0].runtime_env: is of the wrong kind, got 3, allowed: a mapping of keys to values",
        ),
        ("http_options", {1: 2, "port": 0}, "http_options.1: a key must be text. Put it in quotes."),
        ("http_options", {None: 2, "port": 0}, "http_options.null: a key must be text. Put it in quotes."),
        (f"{A0}.args.network", {True: 2}, f"{ARGS}.network.true: a key must be text. Put it in quotes."),
        (
            f"{A0}.import_path",
            "nothing",
            'applications[0].import_path: has the wrong form, got "nothing", allowed: text matching ^[^:]+[:.][^:]+$',
        ),
        (
            f"{A0}.import_path",
            "outrider_cluster.app:buidl",
            'applications[0].import_path: names no application, got "outrider_cluster.app:buidl", '
            "allowed: outrider_cluster.app:build. Did you mean outrider_cluster.app:build?",
        ),
    ],
)
def test_one_fault_is_one_finding_in_plain_words(change: str, value: Any, text: str) -> None:
    assert list(findings(changed(change, value)).values()) == [text]


@pytest.mark.parametrize(
    ("change", "value", "words"),
    [
        (f"{A0}.args.gateway.max_num_seqs", 4, "It belongs under target."),
        (f"{A0}.args.draft_pools.0.kv_cache_memory_bytes", 4, "It belongs under target."),
        (f"{A0}.args.prompt_lookup_max", 4, "It belongs under draft_pools."),
        (f"{A0}.args.target.autoscaling", {"max_replicas": 2, "target_busy_ratio": 0.5}, "draft_pools.autoscaling."),
        (f"{A0}.args.gateway.http_prot", 4, "Did you mean http_port?"),
    ],
)
def test_a_key_that_belongs_elsewhere_is_told_where(change: str, value: Any, words: str) -> None:
    (text,) = findings(changed(change, value)).values()
    assert text.endswith(words)


def test_what_looks_like_no_key_is_not_said_to_be_near_one() -> None:
    (text,) = findings(changed(f"{A0}.args.gateway.qqqq", 1)).values()
    assert "nearest" not in text and "Did you mean" not in text and "http_port" in text


def test_a_class_is_named_by_its_path() -> None:
    pool = {"name": "mine", "method": "custom_class", "model": "Dictionary"}
    (text,) = findings(changed(f"{A0}.args.draft_pools", [pool])).values()
    assert text.endswith('model: must be the path of a class, package.module.Class, got "Dictionary"')


@pytest.mark.parametrize(
    "target",
    [{"max_waiting": 480}, {"max_num_seqs": 1}, {"max_waiting": 224, "replicas": 2}],
    ids=["just enough", "one row and the default", "two targets together"],
)
def test_targets_that_can_hold_the_largest_request_together_have_no_fault(target: dict[str, int]) -> None:
    data = good()
    data["applications"][0]["args"]["target"] |= target
    assert findings(data) == {}
