"""Entries of ``draft_pools``: which method, its keys, and vLLM's keys that mean something else or nothing here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from outrider_cluster.config.finding import Finding, nearest, show, unknown_key
from outrider_cluster.config.settings_check import check_settings
from outrider_cluster.config.speculation import check_vllm_keys, infer_method
from outrider_cluster.config.vllm_keys import HINTS, METHODS, VllmSpeculativeConfig, asks_for_nothing
from outrider_draft.config import PoolSettings
from outrider_draft.methods import METHODS as AVAILABLE

_PREFIX_METHODS = {"suffix_decoding_": "suffix", "prompt_lookup_": "ngram", "dspark_": "dspark"}
_KEY_METHODS = {
    "parallel_drafting": "draft_model",
    "use_heterogeneous_vocab": "draft_model",
    "disable_eagle_block_drop": "eagle",
    "index_share_for_mtp_iteration": "mtp",
}
_CLUSTER_KEY_HINT = "It holds for all pools: put it under speculative_config."


@dataclass(frozen=True, slots=True)
class Pool:
    """What one entry says: keys for its settings class, and what is wrong with it."""

    keys: Mapping[str, Any] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()


def read_pool(value: object) -> Pool:
    """Judge one entry. Paths of findings start at the entry.

    Args:
        value: the entry as the user wrote it.
    """
    if isinstance(value, PoolSettings):
        return Pool(value.model_dump(exclude_unset=True) | {"method": value.method})
    if not isinstance(value, Mapping):
        return Pool(findings=(Finding((), "must be a mapping of keys to values", show((), value)),))
    method = infer_method(value)
    refused = _judge_method(method)
    if refused is not None:
        return Pool(findings=(refused,))
    settings = AVAILABLE[str(method)].settings
    foreign = {key: inner for key, inner in value.items() if key not in settings.model_fields}
    keys = {key: inner for key, inner in value.items() if key in settings.model_fields} | {"method": method}
    findings = [*check_settings(settings, keys), *_judge_foreign(foreign, str(method), settings)]
    return Pool(keys, tuple(findings))


def parse_pool(keys: object) -> PoolSettings:
    """The settings of an entry that has been judged. Raises pydantic's ValidationError where it was not."""
    if isinstance(keys, PoolSettings):
        return keys
    assert isinstance(keys, Mapping), "entries are judged first"
    return AVAILABLE[keys["method"]].settings.model_validate(dict(keys))


def _judge_method(method: object) -> Finding | None:
    allowed = " or ".join(sorted(AVAILABLE))
    if method is None:
        return Finding(("method",), "is required", None, allowed)
    path = ("method",)
    if not isinstance(method, str):
        return Finding(path, "must be text", show(path, method), allowed)
    if method in AVAILABLE:
        return None
    if method in METHODS:
        return Finding(path, "is not available yet", show(path, method), allowed)
    close = nearest(method, [*AVAILABLE, *METHODS])
    hint = None if close is None else f"Did you mean {close}?"
    return Finding(path, "is no drafting method", show(path, method), allowed, hint)


def _judge_foreign(keys: Mapping[Any, Any], method: str, settings: type[PoolSettings]) -> list[Finding]:
    """Keys that the method's settings do not have."""
    known = {key: value for key, value in keys.items() if key in VllmSpeculativeConfig.model_fields}
    findings = check_vllm_keys(known)
    wrong = {finding.path[0] for finding in findings if finding.path}
    for key, value in keys.items():
        if (
            key in known
            and key not in wrong
            and not asks_for_nothing(key, value)
            and not _names_method(key, value, method)
        ):
            findings.append(_misplaced(key, value, method))
        elif key not in known:
            findings.append(_unknown(key, value, settings))
    return findings


def _misplaced(key: str, value: object, method: str) -> Finding:
    shown = show((key,), value)
    if key == "rejection_sample_method":
        return Finding((key,), "is not a key of one pool", shown, None, _CLUSTER_KEY_HINT)
    owner = next((owner for prefix, owner in _PREFIX_METHODS.items() if key.startswith(prefix)), _KEY_METHODS.get(key))
    if owner is not None:
        later = "" if owner in AVAILABLE else ", which is not available yet"
        return Finding((key,), f"belongs to method {owner}{later}", shown, None, "Leave it out.")
    return Finding((key,), f"is not available yet with method {method}", shown, None, "Leave it out.")


def _unknown(key: object, value: object, settings: type[PoolSettings]) -> Finding:
    found = unknown_key((str(key),), value, {*settings.model_fields, "model"})
    hint = HINTS.get(str(key)) or found.suggestion
    close = nearest(key, VllmSpeculativeConfig.model_fields) if hint is None else None
    return Finding(found.path, found.problem, found.value, found.allowed, hint or (close and f"Did you mean {close}?"))


def _names_method(key: str, value: object, method: str) -> bool:
    """VLLM lets pools without a model name their method instead."""
    return key == "model" and value in (method, f"[{method}]")
