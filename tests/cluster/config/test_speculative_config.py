"""vLLM's own ``speculative_config``: every key of its guide is known, what we can do is done, the rest is refused."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from outrider_cluster.config import ClusterConfig
from outrider_cluster.config.vllm_keys import METHODS, VllmSpeculativeConfig
from outrider_draft.config import CustomClassPoolSettings, NgramPoolSettings, SuffixPoolSettings
from outrider_draft.methods import METHODS as AVAILABLE
from outrider_target.control.depth_plan import DepthPlan

GUIDE_DEFAULTS = {
    "method": None,
    "model": None,
    "num_speculative_tokens": None,
    "draft_tensor_parallel_size": None,
    "max_model_len": None,
    "parallel_drafting": False,
    "synthetic_acceptance_rate": None,
    "use_heterogeneous_vocab": False,
    "suffix_decoding_max_tree_depth": 24,
    "suffix_decoding_max_cached_requests": 10000,
    "suffix_decoding_max_spec_factor": 1.0,
    "suffix_decoding_min_token_prob": 0.1,
}
NGRAM = {"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_min": 2, "prompt_lookup_max": 5}
SUFFIX = {"method": "suffix", "num_speculative_tokens": 8, "suffix_decoding_max_tree_depth": 24}


def config(speculative_config: Any, **others: Any) -> ClusterConfig:
    return ClusterConfig.model_validate({"speculative_config": speculative_config, **others})


def refusal(speculative_config: Any, **others: Any) -> str:
    with pytest.raises(ValidationError) as caught:
        config(speculative_config, **others)
    return caught.value.errors()[0]["msg"]


@pytest.mark.parametrize("key", GUIDE_DEFAULTS)
def test_keys_have_the_defaults_of_the_guide(key: str) -> None:
    assert VllmSpeculativeConfig.model_fields[key].default == GUIDE_DEFAULTS[key]


def test_the_example_of_the_guide_becomes_one_pool() -> None:
    found = config(NGRAM)
    assert found.pool_names == ("ngram",)
    assert found.depth == DepthPlan(4)
    (pool,) = found.draft_pools
    assert isinstance(pool, NgramPoolSettings)
    assert tuple(pool.lookup) == (2, 5)


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        ({}, (5, 5)),
        ({"prompt_lookup_min": 3}, (3, 3)),
        ({"prompt_lookup_max": 4}, (4, 4)),
        ({"prompt_lookup_min": 2, "prompt_lookup_max": 6}, (2, 6)),
    ],
)
def test_absent_lookup_bounds_mirror_each_other(bounds: dict[str, int], expected: tuple[int, int]) -> None:
    (pool,) = config({"method": "ngram", **bounds}).draft_pools
    assert isinstance(pool, NgramPoolSettings)
    assert tuple(pool.lookup) == expected


@pytest.mark.parametrize("alias", [{"method": "[ngram]"}, {"model": "ngram"}, {"model": "[ngram]"}])
def test_other_spellings_of_ngram_are_understood(alias: dict[str, str]) -> None:
    assert config(alias).draft_pools[0].method == "ngram"


def test_the_suffix_example_of_the_guide_becomes_one_pool() -> None:
    (pool,) = config(SUFFIX).draft_pools
    assert isinstance(pool, SuffixPoolSettings)
    assert (pool.name, pool.suffix_decoding_max_tree_depth, config(SUFFIX).depth.max_depth) == ("suffix", 24, 8)


@pytest.mark.parametrize(
    ("keys", "depth"),
    [
        pytest.param({}, 24, id="as deep as the tree"),
        pytest.param({"num_speculative_tokens": None}, 24, id="null is absent"),
        pytest.param({"suffix_decoding_max_tree_depth": 10}, 10, id="as deep as a shallower tree"),
        pytest.param({"suffix_decoding_max_tree_depth": 100}, 64, id="no deeper than a proposal can be"),
        pytest.param({"num_speculative_tokens": 3}, 3, id="what is said counts"),
    ],
)
def test_suffix_without_a_number_of_tokens_goes_as_deep_as_vllm_lets_it(keys: dict[str, Any], depth: int) -> None:
    assert config({"method": "suffix", **keys}).depth.max_depth == depth
    assert config({}, draft_pools=[{"name": "tree", "method": "suffix", **keys}]).depth.max_depth == 4


@pytest.mark.parametrize("key", [key for key in VllmSpeculativeConfig.model_fields if key.startswith("suffix_")])
def test_suffix_pools_have_every_key_of_the_guide_with_its_default(key: str) -> None:
    assert SuffixPoolSettings.model_fields[key].default == VllmSpeculativeConfig.model_fields[key].default


def test_a_path_of_a_class_as_model_is_a_custom_class() -> None:
    (pool,) = config({"model": "my.module.Proposer", "num_speculative_tokens": 3}).draft_pools
    assert isinstance(pool, CustomClassPoolSettings)
    assert (pool.name, pool.model) == ("custom-class", "my.module.Proposer")


def test_several_methods_stand_side_by_side() -> None:
    custom = {"name": "mine", "model": "a.B", "options": {"phrases": [[1, 2]]}}
    pools = [{"name": "copy", "method": "ngram"}, {"name": "tree", "method": "suffix", "model": "suffix"}, custom]
    found = ClusterConfig.model_validate({"draft_pools": pools})
    assert [pool.method for pool in found.draft_pools] == ["ngram", "suffix", "custom_class"]
    assert ClusterConfig.model_validate(found.model_dump()) == found


def test_documented_defaults_that_are_written_out_ask_for_nothing() -> None:
    written = {key: field.default for key, field in VllmSpeculativeConfig.model_fields.items()}
    assert config({**written, **NGRAM}) == config(NGRAM)


@pytest.mark.parametrize("method", [method for method in METHODS if method not in AVAILABLE])
def test_a_method_that_is_not_available_yet_is_refused_by_name(method: str) -> None:
    assert f'speculative_config.method: is not available yet, got "{method}"' in refusal({"method": method})


@pytest.mark.parametrize(
    ("model", "method"),
    [("org/some-draft", "draft_model"), ("/models/draft", "draft_model")],
)
def test_an_absent_method_is_inferred_from_the_model(model: str, method: str) -> None:
    assert f'is not available yet, got "{method}"' in refusal({"model": model, "num_speculative_tokens": 3})


SYNTHETIC = {**NGRAM, "rejection_sample_method": "synthetic"}


@pytest.mark.parametrize(
    ("keys", "method", "wants_laws"),
    [
        ({}, "coupled", False),
        ({"rejection_sample_method": "strict"}, "strict", False),
        ({"rejection_sample_method": "probabilistic"}, "probabilistic", True),
        ({"rejection_sample_method": "block"}, "block", True),
        ({"rejection_sample_method": "block", "draft_sample_method": "greedy"}, "block", False),
        ({"rejection_sample_method": "standard"}, "strict", False),
        ({"rejection_sample_method": "standard", "draft_sample_method": "greedy"}, "strict", False),
        ({"rejection_sample_method": "standard", "draft_sample_method": "probabilistic"}, "probabilistic", True),
    ],
)
def test_acceptance_rules_of_both_generations_are_understood(
    keys: dict[str, str], method: str, wants_laws: bool
) -> None:
    rule = config({**NGRAM, **keys}).acceptance_rule
    assert (rule.method.value, rule.wants_draft_laws) == (method, wants_laws)
    assert rule.shares_noise is (method == "coupled")


@pytest.mark.parametrize(
    ("keys", "rates"),
    [
        pytest.param({"synthetic_acceptance_rate": 0.5}, (1.0, 1.0, 0.0, 0.0), id="half of 4 is 2"),
        pytest.param({"synthetic_acceptance_length": 3.5}, (1.0, 1.0, 0.5, 0.0), id="the target's own token counts"),
        pytest.param({"synthetic_acceptance_length": 5}, (1.0,) * 4, id="the longest"),
        pytest.param({"synthetic_acceptance_length": 1}, (0.0,) * 4, id="the shortest"),
        pytest.param(
            {"synthetic_acceptance_rates": [0.8, 0.4, 0.4, 0]}, (0.8, 0.5, 1.0, 0.0), id="as vLLM's: of prefixes"
        ),
        pytest.param({"synthetic_acceptance_rates": [0.5, 0, 0, 0]}, (0.5, 0.0, 0.0, 0.0), id="nothing after nothing"),
    ],
)
def test_pretended_acceptance_of_both_generations_becomes_chances_by_place(
    keys: dict[str, Any], rates: tuple[float, ...]
) -> None:
    assert config({**SYNTHETIC, **keys}).acceptance_rule.synthetic_rates == pytest.approx(rates)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({}, "synthetic needs one of synthetic_acceptance_rate"),
        ({"synthetic_acceptance_rate": 0.5, "synthetic_acceptance_length": 2}, "given 2 of them"),
        ({"synthetic_acceptance_rates": [0.5]}, "must be 4, one for each place"),
        ({"synthetic_acceptance_rates": [0.1, 0.2, 0.2, 0.2]}, "never increase"),
        ({"synthetic_acceptance_length": 5.5}, "exceeds num_speculative_tokens + 1, 5"),
        ({"synthetic_acceptance_length": 0.5}, "at least 1"),
    ],
)
def test_pretended_acceptance_that_cannot_be_is_refused(keys: dict[str, Any], words: str) -> None:
    assert words in refusal({**SYNTHETIC, **keys})


def test_pretended_acceptance_without_a_draft_pool_is_refused() -> None:
    message = refusal({"rejection_sample_method": "synthetic", "synthetic_acceptance_rate": 0.5})
    assert "there is no draft pool" in message


@pytest.mark.parametrize("rule", ["probabilistic", "block"])
def test_a_ratio_rule_with_several_pools_is_refused_with_the_reason(rule: str) -> None:
    pools = [{"name": "a", "method": "ngram"}, {"name": "b", "method": "suffix"}]
    message = refusal({"rejection_sample_method": rule}, draft_pools=pools)
    assert "cannot choose among 2 draft pools: the choice would depend on the proposed tokens" in message
    assert config({"rejection_sample_method": "strict"}, draft_pools=pools).pool_names == ("a", "b")


def test_draws_of_drafters_without_a_rule_that_reads_their_laws_are_refused() -> None:
    assert "needs probabilistic or block, the rule is coupled" in refusal(
        {**NGRAM, "draft_sample_method": "probabilistic"}
    )


def test_a_misspelt_acceptance_rule_is_told_the_nearest() -> None:
    message = refusal({"rejection_sample_method": "couplde"})
    assert 'is no acceptance rule, got "couplde", allowed: coupled or strict' in message
    assert "Did you mean coupled?" in message


def test_a_pretended_rate_without_the_rule_is_refused() -> None:
    assert "synthetic_acceptance_rate belongs to rejection_sample_method synthetic" in refusal(
        {**NGRAM, "synthetic_acceptance_rate": 0.5}
    )


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("tensor_parallel_size", 2, "Use draft_tensor_parallel_size."),
        ("adaptive_verification", True, "Did you mean enable_adaptive_verification?"),
        ("temperature", 0.5, "belongs in requests"),
        ("target_model_config", {}, "vLLM fills this in itself"),
        ("num_speculative_token", 3, "Did you mean num_speculative_tokens?"),
        ("num_speculative_tokens", 0, "at least 1"),
        ("num_speculative_tokens", 65, "at most 64"),
        ("num_speculative_tokens_per_batch_size", [[2, 4, 3]], "the first range starts at 2; it must start at 1"),
        ("num_speculative_tokens_per_batch_size", [], "the table is empty"),
        ("num_speculative_tokens_per_batch_size", [[1, 4]], "expected [start, end, depth]"),
        ("num_speculative_tokens_per_batch_size", [[1, 4, 3], [4, 9, 1]], "[1, 4] and [4, 9] overlap"),
        ("enable_adaptive_verification", True, "is not available yet"),
        ("synthetic_acceptance_rate", 1.5, "at most 1"),
        ("use_heterogeneous_vocab", True, "belongs to method draft_model, which is not available yet"),
        ("draft_tensor_parallel_size", 2, "is not available yet with method ngram"),
        ("quantization", "fp8", "is not available yet with method ngram"),
    ],
)
def test_each_key_that_we_cannot_honour_is_refused_with_a_reason(key: str, value: object, words: str) -> None:
    message = refusal({**NGRAM, key: value})
    assert f"speculative_config.{key}: " in message
    assert words in message


def test_keys_of_a_pool_without_a_method_are_refused() -> None:
    assert "prompt_lookup_max: describes a draft pool, but there is no method" in refusal({"prompt_lookup_max": 3})


def test_an_object_with_a_method_cannot_stand_beside_pools() -> None:
    message = refusal(NGRAM, draft_pools=[{"name": "other", "method": "ngram"}])
    assert "speculative_config.method: cannot stand beside draft_pools" in message


def test_depth_comes_from_the_controller_or_from_the_tokens_and_is_0_without_pools() -> None:
    pools = [{"name": "a", "method": "ngram"}]
    assert config({"num_speculative_tokens": 7}, draft_pools=pools).depth.max_depth == 7
    assert config({"num_speculative_tokens": 7}, draft_pools=pools, controller={"depth": 3}).depth.max_depth == 3
    assert config({}, draft_pools=pools, controller={"depth": 0}).depth.max_depth == 0
    assert config({"num_speculative_tokens": 7}).depth.max_depth == 0


def test_a_dynamic_depth_reaches_the_target_with_its_settings() -> None:
    pools = [{"name": "a", "method": "ngram"}]
    plan = config({"num_speculative_tokens": 6}, draft_pools=pools, controller={"depth": "dynamic"}).depth
    assert plan.needs_costs and plan.max_depth == 6
    changed = {"depth": "dynamic", "dynamic": {"dwell_ms": 10, "token_latency_ms": 50}}
    plan = config({}, draft_pools=pools, controller=changed).depth
    assert (plan.dynamic.dwell_ms, plan.objectives.unnamed_s) == (10, 0.05)


def test_latency_classes_reach_the_target_with_their_objectives() -> None:
    classes = {"interactive": {"token_latency_ms": 40}, "batch": {}}
    dynamic = {"token_latency_ms": 100, "latency_classes": classes}
    found = config({}, controller={"depth": "dynamic", "dynamic": dynamic})
    assert found.depth.latency_classes == ("interactive", "batch")
    assert [found.depth.objectives.of(name) for name in ("interactive", "batch", None)] == [0.04, None, 0.1]
    assert ClusterConfig.model_validate(found.model_dump()) == found


def test_a_table_of_depths_takes_the_place_of_the_controllers_depth() -> None:
    table = {**NGRAM, "num_speculative_tokens_per_batch_size": [[9, 16, 1], [1, 8, 3]]}
    plan = config(table, controller={"depth": "dynamic"}).depth
    assert plan.table == ((1, 8, 3), (9, 16, 1)) and not plan.needs_costs


def test_a_config_is_the_same_after_a_round_trip() -> None:
    found = config({"num_speculative_tokens": 7}, draft_pools=[{"name": "a", "method": "ngram", "replicas": 3}])
    assert ClusterConfig.model_validate(found.model_dump()) == found
