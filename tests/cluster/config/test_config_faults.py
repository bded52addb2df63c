"""A table of faults that people make in cluster files; each is found, at its place, with what was meant.

A row's first line changes a good file; the others are what the finding must hold.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from outrider_doubles.repository import ROOT

from outrider_cluster.config.finding import format_path
from outrider_cluster.config.validate import validate_source
from outrider_cluster.config.vllm_keys import VllmSpeculativeConfig
from outrider_cluster.config.yaml_source import parse_yaml

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
    fault(f"{A0}.deployments", [{"name": "Targt"}], "applications[0].deployments[0].name", "Did you mean Target?"),
    fault(f"{A0}.deployments", [{"name": "Draft:suffix"}], "applications[0].deployments[0].name", "Draft:ngram"),
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
    fault(f"{A0}.args.model.source", "./x", f"{ARGS}.model.source", "./x", "an absolute path or a hub id"),
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
    fault(f"{A0}.args.target.num_cpus", float("nan"), f"{ARGS}.target.num_cpus", "NaN", "at least 0"),
    fault(f"{A0}.args.target.max_num_batched_tokens", 16, f"{ARGS}.target.max_num_batched_tokens", "max_num_seqs, 32"),
    fault(f"{A0}.args.controller.depth", "deep", f"{ARGS}.controller.depth", '"deep"', "static, dynamic, or"),
    fault(f"{A0}.args.controller.dynamic", {"dwell_s": 1}, f"{ARGS}.controller.dynamic.dwell_s", "dwell_ms?"),
    fault(f"{A0}.args.controller.dynamic", {"probe_share": 2}, f"{ARGS}.controller.dynamic.probe_share", "at most 0.1"),
    fault(f"{A0}.args.controller.dynamic", {"profile": "here"}, f"{ARGS}.controller.dynamic.profile", '"here"'),
    fault(f"{A0}.args.controller.depth", 65, f"{ARGS}.controller.depth", "got 65", "0 to 64"),
    fault(f"{A0}.args.controller.depth", 5, f"{ARGS}.controller.depth", "num_speculative_tokens", "at most 4"),
    fault(f"{A0}.args.gateway.http_port", -1, f"{ARGS}.gateway.http_port", "got -1", "at least 0"),
    fault(f"{A0}.args.gateway.http_port", 8001, f"{ARGS}.gateway.http_port", "http_options.port", "8001"),
    fault(f"{A0}.args.gateway.grpc_port", 8000, f"{ARGS}.gateway", "http_port and grpc_port are both 8000"),
    fault(f"{A0}.args.drafting", {"draft_deadline_s": 1}, f"{ARGS}.drafting.draft_deadline_s", "draft_deadline_ms?"),
    fault(f"{A0}.args.network", {"internal_hots": ""}, f"{ARGS}.network.internal_hots", "internal_host?"),
    fault(f"{A0}.args.draft_pools", {"method": "ngram"}, f"{ARGS}.draft_pools", "a list"),
    fault(f"{A0}.args.draft_pools.0.name", "N Gram", f"{ARGS}.draft_pools[0].name", '"N Gram"'),
    fault(f"{A0}.args.draft_pools.0.method", "ngarm", f"{ARGS}.draft_pools[0].method", "Did you mean ngram?"),
    fault(f"{A0}.args.draft_pools.0.method", "medusa", f"{ARGS}.draft_pools[0].method", "medusa is not available yet"),
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


def good() -> Any:
    return yaml.safe_load((ROOT / "cluster.yaml").read_text(encoding="utf-8"))


def changed(change: str, value: Any) -> Any:
    data = good()
    *parents, last = change.split(".")
    place = data
    for key in parents:
        place = place[int(key)] if isinstance(place, list) else place[key]
    place[last] = value
    return data


def findings(data: Any) -> dict[str, str]:
    source = parse_yaml(yaml.safe_dump(data, sort_keys=False), "cluster.yaml")
    return {format_path(found.path): str(found) for found in validate_source(source).findings}


def test_the_file_in_the_repository_has_no_faults() -> None:
    assert findings(good()) == {}


@pytest.mark.parametrize("row", [*SERVE_KEYS, *OUR_KEYS], ids=lambda row: f"{row.path}={row.value}"[:80])
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
    found = findings(changed(f"{A0}.args.gateway.api_keys", "hunter2"))
    assert "hunter2" not in str(found)
    assert found[f"{ARGS}.gateway.api_keys"].startswith(f"{ARGS}.gateway.api_keys: ")


def test_an_application_of_somebody_else_is_left_alone() -> None:
    data = good()
    data["applications"].append({"name": "x", "route_prefix": "/x", "import_path": "my.app:build", "args": {"any": 1}})
    assert findings(data) == {}


@pytest.mark.parametrize(("heads", "size"), [((9, 3), 3), ((8, 2), 2), ((32, 8), 8)])
def test_ranks_among_which_the_heads_of_a_folder_divide_are_taken(
    heads: tuple[int, int], size: int, tmp_path: Path
) -> None:
    assert findings(with_heads(tmp_path, *heads, size)) == {}


def test_ranks_among_which_the_heads_of_a_folder_do_not_divide_are_refused_with_the_numbers(tmp_path: Path) -> None:
    (text,) = findings(with_heads(tmp_path, 32, 8, 3)).values()
    assert "num_attention_heads = 32 and num_key_value_heads = 8" in text
    assert "allowed: 1, 2, 4, 8" in text


def test_heads_that_cannot_be_seen_from_here_are_left_to_the_target() -> None:
    data = good()
    data["applications"][0]["args"]["model"]["source"] = "some/model"
    data["applications"][0]["args"]["target"]["tensor_parallel_size"] = 7
    assert findings(data) == {}


def with_heads(folder: Path, heads: int, key_value_heads: int, size: int) -> dict[str, Any]:
    """A good file for a model folder with so many heads, and so many ranks."""
    config = {"num_attention_heads": heads, "num_key_value_heads": key_value_heads}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    data = good()
    data["applications"][0]["args"]["model"]["source"] = str(folder)
    data["applications"][0]["args"]["target"]["tensor_parallel_size"] = size
    return data
