"""The cluster-wide part of speculation, and what a config may ask of it today."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from outrider_cluster.config.finding import Finding, nearest, show
from outrider_cluster.config.settings_check import check_settings
from outrider_cluster.config.vllm_keys import (
    HINTS,
    REJECTION_METHODS,
    SYNTHETIC_KEYS,
    VllmSpeculativeConfig,
    asks_for_nothing,
)
from outrider_runtime.errors import InvalidConfig
from outrider_runtime.settings import Settings
from outrider_target.acceptance_rule import AcceptanceRule, rates_after_others, rates_of_length
from outrider_target.control.table_policy import DepthRange, parse_table
from outrider_wire.drafting import MAX_CHAIN_TOKENS
from outrider_wire.generation import RejectionSampleMethod

_IMPORT_PATH = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+")
_NGRAM_NAMES = ("ngram", "[ngram]")
CLUSTER_KEYS = (
    "num_speculative_tokens",
    "rejection_sample_method",
    "draft_sample_method",
    "num_speculative_tokens_per_batch_size",
    *SYNTHETIC_KEYS,
)
"""Keys of vLLM's object that hold for all pools; the others describe one pool."""
_OTHER_RULE_KEYS = ("enable_adaptive_verification",)
"""Keys of rules and policies for all pools that there are not yet."""


_Rate = Annotated[float, Field(ge=0, le=1)]


class SpeculativeConfig(Settings):
    """What holds for all draft pools."""

    num_speculative_tokens: int = Field(default=4, ge=1, le=MAX_CHAIN_TOKENS)
    """Proposed tokens per round at most. With `method: suffix` the default is vLLM's, the depth of its tree."""
    rejection_sample_method: Literal["coupled", "strict", "probabilistic", "block", "synthetic"] = "coupled"
    """Acceptance rule; docs/correctness.md says what each promises. vLLM's `standard` becomes `strict` or, with
    `draft_sample_method: probabilistic`, `probabilistic`."""
    draft_sample_method: Literal["greedy", "probabilistic"] | None = None
    """Under the ratio rules: `greedy` asks drafters for certain ids, the others let them draw and send their laws."""
    synthetic_acceptance_rate: _Rate | None = None
    """With `synthetic`: share of proposed tokens to accept."""
    synthetic_acceptance_rates: tuple[_Rate, ...] | None = None
    """With `synthetic`: chance, by place, that a proposed token and all before it are accepted."""
    synthetic_acceptance_length: float | None = Field(default=None, ge=1)
    """With `synthetic`: mean acceptance length, which counts the target's own token."""
    num_speculative_tokens_per_batch_size: tuple[tuple[int, ...], ...] | None = None
    """Depth by the number of decoding requests, as ranges of [first, last, tokens], in place of controller.depth.

    Gaps and all after the last range go on with the depth before; more than num_speculative_tokens is cut to it.
    """

    @property
    def depth_table(self) -> tuple[DepthRange, ...]:
        """The ranges in rising order; empty without a table."""
        table = self.num_speculative_tokens_per_batch_size
        return () if table is None else parse_table(table)

    @field_validator("num_speculative_tokens_per_batch_size")
    @classmethod
    def _check_table(cls, value: tuple[tuple[int, ...], ...] | None) -> tuple[tuple[int, ...], ...] | None:
        """Every rule that a table must keep."""
        if value is not None:
            try:
                parse_table(value)
            except InvalidConfig as error:
                raise ValueError(str(error)) from error
        return value

    @property
    def acceptance_rule(self) -> AcceptanceRule:
        """The rule for targets."""
        method, depth = RejectionSampleMethod(self.rejection_sample_method), self.num_speculative_tokens
        rates: tuple[float, ...] = ()
        if self.synthetic_acceptance_rates is not None:
            rates = rates_after_others(self.synthetic_acceptance_rates)
        elif self.synthetic_acceptance_length is not None:
            rates = rates_of_length(self.synthetic_acceptance_length, depth)
        elif self.synthetic_acceptance_rate is not None:
            rates = rates_of_length(1 + depth * self.synthetic_acceptance_rate, depth)
        return AcceptanceRule(method, rates, draws_drafts=self.draft_sample_method != "greedy")

    @model_validator(mode="after")
    def _check_rule(self) -> SpeculativeConfig:
        """Keys of a rule only with that rule, and as many as it needs."""
        method, depth = self.rejection_sample_method, self.num_speculative_tokens
        given = [key for key in SYNTHETIC_KEYS if getattr(self, key) is not None]
        if method != "synthetic" and given:
            raise ValueError(f"{given[0]} belongs to rejection_sample_method synthetic, which is {method} here")
        if method == "synthetic" and len(given) != 1:
            raise ValueError(f"synthetic needs one of {', '.join(SYNTHETIC_KEYS)}, given {len(given)} of them")
        if self.draft_sample_method == "probabilistic" and method not in ("probabilistic", "block"):
            raise ValueError(f"draft_sample_method probabilistic needs probabilistic or block, the rule is {method}")
        rates, length = self.synthetic_acceptance_rates, self.synthetic_acceptance_length
        if rates is not None and (len(rates) != depth or list(rates) != sorted(rates, reverse=True)):
            raise ValueError(f"synthetic_acceptance_rates must be {depth}, one for each place, and never increase")
        if length is not None and length > depth + 1:
            raise ValueError(f"synthetic_acceptance_length {length:g} exceeds num_speculative_tokens + 1, {depth + 1}")
        return self


@dataclass(frozen=True, slots=True)
class Speculation:
    """What a ``speculative_config`` says: settings for all pools, keys of its own pool, and what is wrong with it."""

    cluster: Mapping[str, Any] = field(default_factory=dict)
    pool: Mapping[str, Any] | None = None
    """Keys of the pool that a vLLM object describes; None when it describes none."""
    findings: tuple[Finding, ...] = ()


def read_speculation(value: object) -> Speculation:
    """Take a ``speculative_config`` apart; vLLM's own object is understood as it is.

    Args:
        value: the object as the user wrote it. Paths of findings start at it.
    """
    if isinstance(value, SpeculativeConfig):
        return Speculation(cluster=value.model_dump())
    findings = check_vllm_keys(value)
    if findings or not isinstance(value, Mapping):
        return Speculation(findings=tuple(findings))
    cluster = _cluster_keys(value)
    findings = [*_unavailable_rules(value), *check_settings(SpeculativeConfig, cluster)]
    pool = {key: inner for key, inner in value.items() if key not in (*CLUSTER_KEYS, *_OTHER_RULE_KEYS)}
    method = infer_method(value)
    if method == "suffix" and "num_speculative_tokens" not in cluster:
        cluster["num_speculative_tokens"] = _suffix_tokens(value)
    if method is None:
        findings += [_without_method(key, inner) for key, inner in pool.items() if not asks_for_nothing(key, inner)]
    own_pool = None if method is None else {"name": _pool_name(method), **pool, "method": method}
    return Speculation(cluster, own_pool, tuple(_once(findings)))


def check_vllm_keys(value: object) -> list[Finding]:
    """Unknown keys and values of the wrong kind, judged by vLLM's table."""
    return [_with_hint(finding) for finding in check_settings(VllmSpeculativeConfig, value)]


def _with_hint(finding: Finding) -> Finding:
    hint = HINTS.get(str(finding.path[-1])) if finding.path else None
    return finding if hint is None else replace(finding, suggestion=hint)


def infer_method(keys: Mapping[str, Any]) -> str | None:
    """The method that a pool's keys ask for, by vLLM's rules; None when they ask for none."""
    method, model = keys.get("method"), keys.get("model")
    if method is None and isinstance(model, str):
        if model in _NGRAM_NAMES:
            return "ngram"
        return "custom_class" if _IMPORT_PATH.fullmatch(model) else "draft_model"
    return "ngram" if method in _NGRAM_NAMES else method


def _suffix_tokens(value: Mapping[str, Any]) -> int:
    """VLLM's default with `method: suffix`, which decides by itself how much to propose: as deep as its tree."""
    return min(VllmSpeculativeConfig.model_validate(value).suffix_decoding_max_tree_depth, MAX_CHAIN_TOKENS)


def _unavailable_rules(value: Mapping[str, Any]) -> list[Finding]:
    rule = value.get("rejection_sample_method")
    findings = []
    if rule is not None and rule not in REJECTION_METHODS:
        findings.append(_no_rule(rule))
    for key in _OTHER_RULE_KEYS:
        if key in value and not asks_for_nothing(key, value[key]):
            shown = show((key,), value[key])
            findings.append(Finding((key,), "is not available yet", shown, None, "Leave it out."))
    return findings


def _no_rule(rule: object) -> Finding:
    path = ("rejection_sample_method",)
    close = nearest(rule, REJECTION_METHODS)
    meant = None if close is None else f"Did you mean {close}?"
    return Finding(path, "is no acceptance rule", show(path, rule), " or ".join(REJECTION_METHODS), meant)


def _cluster_keys(value: Mapping[str, Any]) -> dict[str, Any]:
    """Keys that hold for all pools; vLLM's `standard` in our words, which is equality where drafts are certain."""
    keys = _only(value, CLUSTER_KEYS)
    if keys.get("rejection_sample_method") == "standard":
        drawn = keys.get("draft_sample_method") == "probabilistic"
        keys["rejection_sample_method"] = "probabilistic" if drawn else "strict"
    return keys


def _without_method(key: str, value: object) -> Finding:
    hint = "Add method, or move the key to an entry of draft_pools."
    return Finding((key,), "describes a draft pool, but there is no method", show((key,), value), None, hint)


def _pool_name(method: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", method.lower()).strip("-") or "pool"


def _only(value: Mapping[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    return {key: value[key] for key in keys if value.get(key) is not None}


def _once(findings: list[Finding]) -> list[Finding]:
    """The first finding of each path."""
    return list({finding.path: finding for finding in reversed(findings)}.values())[::-1]
