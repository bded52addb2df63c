"""Judges the arguments of our application section by section, and brings them into the shape of `ClusterConfig`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from outrider_cluster.config.finding import Finding, show, unknown_key
from outrider_cluster.config.model_check import judge_place, judge_size
from outrider_cluster.config.network import NetworkSettings
from outrider_cluster.config.places import with_place
from outrider_cluster.config.pools import read_pool
from outrider_cluster.config.settings_check import check_settings
from outrider_cluster.config.speculation import Speculation, SpeculativeConfig, read_speculation
from outrider_cluster.controller.settings import ControllerSettings
from outrider_cluster.gateway.settings import GatewaySettings
from outrider_draft.methods import METHODS
from outrider_runtime.errors import shorten
from outrider_runtime.settings import Settings
from outrider_target.drafting.settings import DraftingSettings
from outrider_target.settings import ModelSettings, TargetSettings
from outrider_wire.sampling import MAX_CHOICES

PLAIN_SECTIONS: Mapping[str, type[Settings]] = {
    "model": ModelSettings,
    "target": TargetSettings,
    "drafting": DraftingSettings,
    "controller": ControllerSettings,
    "gateway": GatewaySettings,
    "network": NetworkSettings,
}
"""Sections that are one settings object each."""
_SPECULATION, _POOLS = "speculative_config", "draft_pools"
SECTIONS = (*PLAIN_SECTIONS, _SPECULATION, _POOLS)
_PLACES: list[tuple[str, type[Settings]]] = [
    *PLAIN_SECTIONS.items(),
    (_SPECULATION, SpeculativeConfig),
    *((_POOLS, method.settings) for method in METHODS.values()),
]


@dataclass(frozen=True, slots=True)
class Args:
    """Arguments in the shape of the settings, and everything that is wrong with them."""

    data: Mapping[str, Any] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()


def read_args(value: object) -> Args:
    """Judge arguments. Paths of findings start at `value`.

    Args:
        value: the arguments as the user wrote them. None, also for a section, means defaults.
    """
    if value is None:
        return Args()
    if not isinstance(value, Mapping):
        return Args(findings=(Finding((), "must be a mapping of keys to values", show((), value)),))
    given = {key: inner for key, inner in value.items() if inner is not None}
    speculation = _read_speculation(given)
    pools, pool_findings = _read_pools(given, speculation)
    findings = [*_judge_sections(value), *speculation.findings, *pool_findings]
    data = {key: inner for key, inner in given.items() if key in SECTIONS}
    data |= {_SPECULATION: speculation.cluster, _POOLS: pools}
    findings += _judge_whole(data, {finding.path[0] for finding in findings})
    return Args(data, tuple(with_place(finding, _PLACES) for finding in findings))


def _judge_sections(value: Mapping[Any, Any]) -> Iterator[Finding]:
    for key, inner in value.items():
        if not isinstance(key, str):
            yield Finding((shorten(key).strip('"'),), "a key must be text", None, None, "Put it in quotes.")
        elif key not in SECTIONS:
            yield unknown_key((key,), inner, SECTIONS)
        elif key in PLAIN_SECTIONS and inner is not None:
            yield from (finding.under((key,)) for finding in check_settings(PLAIN_SECTIONS[key], inner))


def _read_speculation(given: Mapping[Any, Any]) -> Speculation:
    found = read_speculation(given.get(_SPECULATION, {}))
    findings = tuple(finding.under((_SPECULATION,)) for finding in found.findings)
    return Speculation(found.cluster, found.pool, findings)


def _read_pools(value: Mapping[Any, Any], speculation: Speculation) -> tuple[list[Mapping[str, Any]], list[Finding]]:
    entries = value.get(_POOLS, [])
    if not isinstance(entries, list | tuple):
        return [], [Finding((_POOLS,), "must be a list of pools", show((_POOLS,), entries))]
    pools = [read_pool(entry) for entry in entries]
    findings = [finding.under((_POOLS, i)) for i, pool in enumerate(pools) for finding in pool.findings]
    findings += _repeated_names(entries)
    keys = [pool.keys for pool in pools]
    if speculation.pool is not None:
        own = read_pool(speculation.pool)
        findings += [finding.under((_SPECULATION,)) for finding in own.findings]
        findings += [_two_places(speculation.pool)] if entries else []
        keys.append(own.keys)
    return keys, findings


def _two_places(pool: Mapping[str, Any]) -> Finding:
    hint = "Move method and its keys into an entry of draft_pools."
    return Finding((_SPECULATION, "method"), "cannot stand beside draft_pools", show((), pool["method"]), None, hint)


def _repeated_names(entries: Iterable[object]) -> Iterator[Finding]:
    """Of all entries, also of those with other faults."""
    seen: set[str] = set()
    for i, entry in enumerate(entries):
        name = entry.get("name") if isinstance(entry, Mapping) else getattr(entry, "name", None)
        if not isinstance(name, str):
            continue
        if name in seen:
            yield Finding((_POOLS, i, "name"), "is the name of an earlier pool", show((), name), "a name of its own")
        seen.add(name)


def _judge_whole(data: Mapping[str, Any], faulty: Set[str | int]) -> Iterator[Finding]:
    """Rules about several keys or sections, as far as these sections have no faults; each names all its values."""
    if not faulty & {"controller", _SPECULATION}:
        yield from _judge_depth(data)
    if not faulty & {_SPECULATION, _POOLS}:
        yield from _judge_rule(SpeculativeConfig.model_validate(data[_SPECULATION]), data[_POOLS])
    if "model" not in faulty:
        yield from judge_place(ModelSettings.model_validate(data.get("model", {})))
    if "target" not in faulty:
        yield from _judge_target(TargetSettings.model_validate(data.get("target", {})))
    if not faulty & {"gateway", "target"}:
        gateway = GatewaySettings.model_validate(data.get("gateway", {}))
        yield from _judge_largest_request(gateway, TargetSettings.model_validate(data.get("target", {})))
    if not faulty & {"model", "target"}:
        model = ModelSettings.model_validate(data.get("model", {}))
        yield from judge_size(model, TargetSettings.model_validate(data.get("target", {})))


def _judge_depth(data: Mapping[str, Any]) -> Iterator[Finding]:
    controller = ControllerSettings.model_validate(data.get("controller", {}))
    most = SpeculativeConfig.model_validate(data[_SPECULATION]).num_speculative_tokens
    if isinstance(controller.depth, int) and "num_speculative_tokens" in data[_SPECULATION] and controller.depth > most:
        path = ("controller", "depth")
        problem = "exceeds speculative_config.num_speculative_tokens"
        yield Finding(path, problem, str(controller.depth), f"at most {most}")


def _judge_target(target: TargetSettings) -> Iterator[Finding]:
    if target.max_num_batched_tokens < target.max_num_seqs:
        path = ("target", "max_num_batched_tokens")
        allowed = f"at least target.max_num_seqs, {target.max_num_seqs}"
        yield Finding(path, "leaves no token for some requests", str(target.max_num_batched_tokens), allowed)


def _judge_largest_request(gateway: GatewaySettings, target: TargetSettings) -> Iterator[Finding]:
    """A request that the gateway takes and that idle targets could never hold: every retry would be refused again."""
    choices = gateway.max_prompts * MAX_CHOICES
    if (target.max_waiting + target.max_num_seqs) * target.replicas < choices:
        least = math.ceil(choices / target.replicas) - target.max_num_seqs
        problem = (
            f"leaves no room for the largest request, gateway.max_prompts {gateway.max_prompts} x {MAX_CHOICES} "
            f"choices, with target.max_num_seqs {target.max_num_seqs} and target.replicas {target.replicas}"
        )
        yield Finding(("target", "max_waiting"), problem, str(target.max_waiting), f"at least {least}")


def _judge_rule(speculation: SpeculativeConfig, pools: Sequence[object]) -> Iterator[Finding]:
    """Rules of acceptance that do not go with the pools."""
    path, method = (_SPECULATION, "rejection_sample_method"), speculation.rejection_sample_method
    if method in ("probabilistic", "block") and len(pools) > 1:
        problem = f"cannot choose among {len(pools)} draft pools: the choice would depend on the proposed tokens"
        yield Finding(path, problem, show(path, method), "coupled or strict, or one pool")
    if method == "synthetic" and not pools:
        yield Finding(path, "pretends to accept proposals, but there is no draft pool", show(path, method))
