"""A table of faults that people make in cluster files; each is found, at its place, with what was meant.

A row's first line changes a good file; the others are what the finding must hold.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from outrider_doubles.config_files import changed, findings, good

from outrider_cluster.config.vllm_keys import VllmSpeculativeConfig

ARGS = "applications[0].args"


@dataclass(frozen=True)
class Fault:
    """Set the value at `change` (dots and numbers) to `value`; the finding at `path` must hold each of `words`."""

    change: str
    value: Any
    path: str
    words: tuple[str, ...]


def fault(change: str, value: Any, path: str, *words: str) -> Fault:
    return Fault(change, value, path, words)


A0 = "applications.0"
SERVE_KEYS = [
    fault("proxy_locaton", "HeadOnly", "proxy_locaton", "unknown key", "Did you mean proxy_location?"),
    fault("proxy_location", "HeadNode", "proxy_location", '"HeadNode"', "HeadOnly"),
    fault("http_options.prt", 1, "http_options.prt", "unknown key", "Did you mean port?"),
    fault("http_options.port", 70000, "http_options.port", "70000", "at most 65535"),
    fault("http_options.port", True, "http_options.port", "must be a number"),
    fault("http_options", [1], "http_options", "a mapping of keys to values"),
    fault("grpc_options", {"portt": 1}, "grpc_options.portt", "Did you mean port?"),
    fault("logging_config", {"log_levl": "INFO"}, "logging_config.log_levl", "Did you mean log_level?"),
    fault("logging_config", {"encoding": "XML"}, "logging_config.encoding", "TEXT or JSON"),
    fault("tracing_config", {"sampling_ratio": 2}, "tracing_config.sampling_ratio", "at most 1"),
    fault("controller_options", {"env": {}}, "controller_options.env", "unknown key"),
    fault("target_capacity", 300, "target_capacity", "300", "at most 100"),
    fault("application", [], "application", "Did you mean applications?"),
    fault("applications", [], "applications", "outrider_cluster.app:build"),
    fault("applications", {"name": "x"}, "applications", "a list"),
    fault(f"{A0}.rute_prefix", "/", "applications[0].rute_prefix", "Did you mean route_prefix?"),
    fault(f"{A0}.route_prefix", "v1", "applications[0].route_prefix", '"v1"', "matching ^/"),
    fault(f"{A0}.name", "", "applications[0].name", "at least 1 character"),
    fault(f"{A0}.import_path", "outrider_cluster.app:buidl", "applications[0].import_path", "app:build?"),
    fault(f"{A0}.import_path", "nothing", "applications[0].import_path", '"nothing"'),
    fault(f"{A0}.runtime_env", {"env_var": {}}, "applications[0].runtime_env.env_var", "Did you mean env_vars?"),
    fault(
        f"{A0}.runtime_env",
        {"working_dir": "./examples"},
        "applications[0].runtime_env.working_dir",
        "is a path",
        "local:///absolute",
        '"./examples"',
    ),
    fault(
        f"{A0}.deployments",
        [{"name": "Target", "ray_actor_options": {"runtime_env": {"py_modules": ["local:///a", "ftp://a"]}}}],
        "applications[0].deployments[0].ray_actor_options.runtime_env.py_modules[1]",
        "has a scheme that Ray does not know",
        '"ftp://a"',
    ),
    fault(f"{A0}.deployments", [{"name": "Targt"}], "applications[0].deployments[0].name", "Did you mean Target?"),
    fault(f"{A0}.deployments", [{"name": "Draft:ngrams"}], "applications[0].deployments[0].name", "Draft:ngram"),
    fault(f"{A0}.deployments", [{"num_replicas": 1}], "applications[0].deployments[0].name", "is required"),
    fault(
        f"{A0}.deployments",
        [{"name": "Controller", "num_replicas": 2}],
        "applications[0].deployments[0].num_replicas",
        "must stay 1",
    ),
    fault(
        f"{A0}.deployments",
        [{"name": "Target", "ray_actor_options": {"num_cpu": 1}}],
        "applications[0].deployments[0].ray_actor_options.num_cpu",
        "Did you mean num_cpus?",
    ),
    fault(
        f"{A0}.deployments",
        [{"name": "Target", "autoscaling_config": {"max_replica": 1}}],
        "applications[0].deployments[0].autoscaling_config.max_replica",
        "Did you mean max_replicas?",
    ),
]
OUR_KEYS = [
    fault(f"{A0}.args.modle", {}, f"{ARGS}.modle", "Did you mean model?"),
    fault(f"{A0}.args.target", 3, f"{ARGS}.target", "a mapping of keys to values", "3"),
    fault(f"{A0}.args.model.source", "./x", f"{ARGS}.model.source", "./x", "an absolute path, or a hub id"),
    fault(f"{A0}.args.model.source", "", f"{ARGS}.model.source", 'got ""', "at least 1 character"),
    fault(f"{A0}.args.model.source", "a b", f"{ARGS}.model.source", "is neither a path nor a hub id"),
    fault(f"{A0}.args.model.cache_dir", "models", f"{ARGS}.model.cache_dir", "is a relative path"),
    fault(f"{A0}.args.target.max_model_len", 8193, f"{ARGS}.target.max_model_len", "the model knows", "at most 8192"),
    fault(f"{A0}.args.target.num_cpus", "1e30", f"{ARGS}.target.num_cpus", "at most 4096"),
    fault(f"{A0}.args.target.kv_cache_memory_bytes", 10**30, f"{ARGS}.target.kv_cache_memory_bytes", "at most 1125899"),
    fault(f"{A0}.args.target.kv_cache_memory_bytes", "9" * 400 + "GiB", f"{ARGS}.target.kv_cache_memory_bytes", "1GiB"),
    fault(f"{A0}.args.gateway.request_timeout_s", float("inf"), f"{ARGS}.gateway.request_timeout_s", "finite"),
    fault(f"{A0}.args.model.cache_dir", "~/models", f"{ARGS}.model.cache_dir", "~/models", "an absolute path"),
    fault(f"{A0}.args.model.revision", "main", f"{ARGS}.model.revision", "for hub ids only"),
    fault(f"{A0}.args.model.dtype", "float16", f"{ARGS}.model.dtype", '"float16"', "bfloat16 or float32"),
    fault(f"{A0}.args.target.max_num_seq", 8, f"{ARGS}.target.max_num_seq", "Did you mean max_num_seqs?"),
    fault(f"{A0}.args.target.max_num_seqs", 0, f"{ARGS}.target.max_num_seqs", "got 0", "at least 1"),
    fault(f"{A0}.args.target.max_num_seqs", "many", f"{ARGS}.target.max_num_seqs", '"many"', "an integer"),
    fault(f"{A0}.args.target.max_num_seqs", True, f"{ARGS}.target.max_num_seqs", "must be a number"),
    fault(
        f"{A0}.args.target.tensor_parallel_size",
        2,
        f"{ARGS}.target.tensor_parallel_size",
        "_heads = 9",
        "allowed: 1, 3",
    ),
    fault(f"{A0}.args.target.tensor_parallel_size", 0, f"{ARGS}.target.tensor_parallel_size", "got 0", "at least 1"),
    fault(f"{A0}.args.target.kv_cache_memory_bytes", "1 GiBB", f"{ARGS}.target.kv_cache_memory_bytes", "512MiB"),
    fault(f"{A0}.args.target.num_cpus", float("nan"), f"{ARGS}.target.num_cpus", ".nan", "finite"),
    fault(f"{A0}.args.target.max_num_batched_tokens", 16, f"{ARGS}.target.max_num_batched_tokens", "max_num_seqs, 32"),
    fault(f"{A0}.args.target.max_waiting", 479, f"{ARGS}.target.max_waiting", "32 x 16 choices", "at least 480"),
    fault(f"{A0}.args.controller.depth", "deep", f"{ARGS}.controller.depth", '"deep"', "static, dynamic, or"),
    fault(f"{A0}.args.controller.dynamic", {"dwell_s": 1}, f"{ARGS}.controller.dynamic.dwell_s", "dwell_ms?"),
    fault(f"{A0}.args.controller.dynamic", {"probe_share": 2}, f"{ARGS}.controller.dynamic.probe_share", "at most 0.1"),
    fault(f"{A0}.args.controller.dynamic", {"profile": "here"}, f"{ARGS}.controller.dynamic.profile", '"here"'),
    fault(f"{A0}.args.controller.depth", 65, f"{ARGS}.controller.depth", "got 65", "0 to 64"),
    fault(f"{A0}.args.controller.depth", 9, f"{ARGS}.controller.depth", "num_speculative_tokens", "at most 8"),
    fault(f"{A0}.args.gateway.http_port", -1, f"{ARGS}.gateway.http_port", "got -1", "at least 0"),
    fault(f"{A0}.args.gateway.http_port", 8001, f"{ARGS}.gateway.http_port", "http_options.port", "8001"),
    fault(f"{A0}.args.gateway.grpc_port", 8000, f"{ARGS}.gateway", "http_port and grpc_port are both 8000"),
    fault(f"{A0}.args.drafting", {"draft_deadline_s": 1}, f"{ARGS}.drafting.draft_deadline_s", "draft_deadline_ms?"),
    fault(f"{A0}.args.network", {"internal_hots": ""}, f"{ARGS}.network.internal_hots", "internal_host?"),
    fault(f"{A0}.args.draft_pools", {"method": "ngram"}, f"{ARGS}.draft_pools", "a list"),
    fault(f"{A0}.args.draft_pools.0.name", "N Gram", f"{ARGS}.draft_pools[0].name", '"N Gram"'),
    fault(f"{A0}.args.draft_pools.0.method", "ngarm", f"{ARGS}.draft_pools[0].method", "Did you mean ngram?"),
    fault(
        f"{A0}.args.draft_pools.0.method",
        "medusa",
        f"{ARGS}.draft_pools[0].method",
        'is not available yet, got "medusa"',
    ),
    fault(
        f"{A0}.args.draft_pools", [{"name": "s", "method": "custom_class"}], f"{ARGS}.draft_pools[0].model", "required"
    ),
    fault(
        f"{A0}.args.draft_pools",
        [{"name": "s", "method": "suffix", "suffix_decoding_min_token_prob": 2}],
        f"{ARGS}.draft_pools[0].suffix_decoding_min_token_prob",
        "at most 1",
    ),
    fault(
        f"{A0}.args.draft_pools",
        [{"name": "s", "method": "suffix", "share_corpu": True}],
        f"{ARGS}.draft_pools[0].share_corpu",
        "Did you mean share_corpus?",
    ),
    fault(f"{A0}.args.draft_pools.0.replcas", 2, f"{ARGS}.draft_pools[0].replcas", "Did you mean replicas?"),
    fault(f"{A0}.args.draft_pools.0.prompt_lookup_min", 9, f"{ARGS}.draft_pools[0]", "prompt_lookup_min 9", "max 5"),
    fault(f"{A0}.args.draft_pools.0.temperature", 1, f"{ARGS}.draft_pools[0].temperature", "sampling parameter"),
    fault(
        f"{A0}.args.draft_pools.0.rejection_sample_method",
        "coupled",
        f"{ARGS}.draft_pools[0].rejection_sample_method",
        "put it under speculative_config",
    ),
    fault(
        f"{A0}.args.draft_pools.0.suffix_decoding_max_tree_depth",
        30,
        f"{ARGS}.draft_pools[0].suffix_decoding_max_tree_depth",
        "belongs to method suffix",
    ),
    fault(
        f"{A0}.args.draft_pools",
        [{"name": "a", "method": "ngram"}, {"name": "a", "method": "ngram"}],
        f"{ARGS}.draft_pools[1].name",
        "is the name of an earlier pool",
    ),
    fault(f"{A0}.args.draft_pools", [{"method": "ngram"}], f"{ARGS}.draft_pools[0].name", "is required"),
    fault(f"{A0}.args.draft_pools", [{"name": "a"}], f"{ARGS}.draft_pools[0].method", "is required", "ngram"),
    fault(f"{A0}.args.draft_pools", ["ngram"], f"{ARGS}.draft_pools[0]", "a mapping of keys to values"),
]


def class_fault(classes: Any, path: str, *words: str) -> Fault:
    """A fault of `controller.dynamic.latency_classes`; `path` goes on from there."""
    dynamic = f"{ARGS}.controller.dynamic.latency_classes"
    return fault(f"{A0}.args.controller.dynamic", {"latency_classes": classes}, f"{dynamic}{path}", *words)


CLASSES = [
    class_fault({"fast": {"token_latency": 4}}, ".fast.token_latency", "Did you mean token_latency_ms?"),
    class_fault({"fast": {"token_latency_ms": 0}}, ".fast.token_latency_ms", "got 0", "at least 0.01"),
    class_fault({"fast": {"token_latency_ms": True}}, ".fast.token_latency_ms", "must be a number"),
    class_fault({"fast": 40}, ".fast", "got 40", "a mapping of keys to values"),
    class_fault({"Very fast": {}}, "", '"Very fast" is no name', "1 to 63 of a-z"),
    class_fault(["fast"], "", "a mapping of keys to values"),
]


def test_the_file_in_the_repository_has_no_faults() -> None:
    assert findings(good()) == {}


@pytest.mark.parametrize("row", [*SERVE_KEYS, *OUR_KEYS, *CLASSES], ids=lambda row: f"{row.path}={row.value}"[:80])
def test_a_fault_is_found_with_its_place_and_what_was_meant(row: Fault) -> None:
    found = findings(changed(row.change, row.value))
    assert row.path in found
    for word in row.words:
        assert word in found[row.path]


def test_all_faults_are_found_at_once() -> None:
    data = changed("proxy_locaton", "HeadOnly")
    data["applications"][0]["args"]["target"]["max_num_seq"] = 1
    data["applications"][0]["args"]["draft_pools"][0]["replcas"] = 1
    data["applications"][0]["args"]["gateway"]["http_port"] = "x"
    assert set(findings(data)) == {
        "proxy_locaton",
        f"{ARGS}.target.max_num_seq",
        f"{ARGS}.draft_pools[0].replcas",
        f"{ARGS}.gateway.http_port",
    }


def test_rules_about_several_keys_are_checked_beside_other_faults() -> None:
    data = changed("target_capacity", 50)
    args = data["applications"][0]["args"]
    args["network"]["internal_hots"] = "x"
    args["target"]["max_num_batched_tokens"] = 1
    args["model"]["revision"] = "main"
    args["gateway"]["http_port"] = 8001
    args["draft_pools"] = [{"name": "a", "method": "medusa"}, {"name": "a", "method": "ngram", "replcas": 1}]
    assert set(findings(data)) == {
        f"{ARGS}.network.internal_hots",
        f"{ARGS}.target.max_num_batched_tokens",
        f"{ARGS}.model.revision",
        f"{ARGS}.draft_pools[0].method",
        f"{ARGS}.draft_pools[1].replcas",
        f"{ARGS}.draft_pools[1].name",
    }


def test_ports_are_compared_beside_other_faults() -> None:
    data = changed("applications.0.import_path", "outrider_cluster.app:build")
    data["applications"].append({"import_path": "outrider_cluster.app:buidl", "name": "b", "route_prefix": "/b"})
    data["applications"][0]["args"]["gateway"]["http_port"] = 8001
    assert set(findings(data)) == {"applications[1].import_path", f"{ARGS}.gateway.http_port"}


def test_a_misspelt_key_among_many_is_answered_with_the_three_nearest() -> None:
    found = findings(changed(f"{A0}.args.speculative_config.num_speculative_token", 3))
    message = found[f"{ARGS}.speculative_config.num_speculative_token"]
    assert "Did you mean num_speculative_tokens?" in message
    assert "num_speculative_tokens_per_batch_size" in message
    assert sum(key in message for key in VllmSpeculativeConfig.model_fields) <= 4


def test_a_default_port_of_serve_counts_like_a_written_one() -> None:
    data = good()
    del data["http_options"]
    assert f"{ARGS}.gateway.http_port" in findings(data)


def test_two_applications_share_neither_names_nor_routes_nor_ports() -> None:
    data = good()
    data["applications"].append(dict(data["applications"][0]))
    assert {"applications[1].name", "applications[1].route_prefix"} <= set(findings(data))
    data["applications"][1] |= {"name": "second", "route_prefix": "/second"}
    assert set(findings(data)) == {
        "applications[1].args.gateway.http_port",
        "applications[1].args.gateway.grpc_port",
    }


def test_secrets_are_never_shown() -> None:
    found = findings(changed(f"{A0}.args.gateway.api_keys", ["hunter 2"]))
    assert "key 0 is empty" in found[f"{ARGS}.gateway.api_keys"] and "hunter" not in str(found)
    found = findings(changed(f"{A0}.args.gateway.api_keys", "hunter2"))
    assert "hunter2" not in str(found)
    assert found[f"{ARGS}.gateway.api_keys"].startswith(f"{ARGS}.gateway.api_keys: ")


def test_an_application_of_somebody_else_is_left_alone() -> None:
    data = good()
    data["applications"].append({"name": "x", "route_prefix": "/x", "import_path": "my.app:build", "args": {"any": 1}})
    assert findings(data) == {}
