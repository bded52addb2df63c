"""Strict, offline validation of a whole Serve config file: Serve's keys and ours, all faults at once.

Knows the file and, unless it is meant for other machines, the model folders, step costs and corpora that it names;
whether a hub has a model, or a port is free, shows when it is served.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from outrider_cluster.config.args_check import Args, read_args
from outrider_cluster.config.cluster import ClusterConfig
from outrider_cluster.config.deployments import CONTROLLER, GATEWAY, TARGET, deployment_names, draft_deployment
from outrider_cluster.config.device_check import judge_device
from outrider_cluster.config.finding import Finding, KeyPath, nearest, show
from outrider_cluster.config.model_check import judge_folder
from outrider_cluster.config.pool_check import judge_corpora, remark_classes
from outrider_cluster.config.ports import Listener, listeners, repeated_ports
from outrider_cluster.config.profile_check import judge_profile
from outrider_cluster.config.serve_schema import ServeFile
from outrider_cluster.config.settings_check import check_settings
from outrider_cluster.config.yaml_source import YamlSource, read_yaml

IMPORT_PATH = "outrider_cluster.app:build"
"""How a Serve file names our application."""


@dataclass(frozen=True, slots=True)
class Validated:
    """A file and everything that is wrong with it."""

    source: YamlSource
    configs: Mapping[str, ClusterConfig]
    """Our applications by name; only those without faults."""
    listeners: tuple[Listener, ...]
    """Addresses that it asks for; none of a file whose own keys have faults."""
    findings: tuple[Finding, ...]
    remarks: tuple[Finding, ...] = ()
    """What may be right where the file is served, though it does not look so from here."""


def validate_file(path: Path, served_here: bool = True) -> Validated:
    """Validate the file at `path`.

    Args:
        path: a file for `ray serve deploy`.
        served_here: whether it is served on this machine, which then has its model folders, step costs and corpora.

    Raises:
        InvalidConfig: it cannot be read, or is no YAML.
    """
    return validate_source(read_yaml(path), served_here)


def validate_source(source: YamlSource, served_here: bool = False) -> Validated:
    """Validate what a file says; findings are in the order of the file. `served_here` as in `validate_file`."""
    own = check_settings(ServeFile, source.data)
    findings, remarks = [*own], list[Finding]()
    ours = {i: app for i, app in enumerate(_applications(source.data)) if _is_ours(app)}
    judged = {i: read_args(app.get("args")) for i, app in ours.items()}
    for i, args in judged.items():
        findings += [finding.under(("applications", i, "args")) for finding in args.findings]
    configs = {i: ClusterConfig.model_validate(ours[i].get("args") or {}) for i in ours if not judged[i].findings}
    if served_here:
        for i, config in configs.items():
            here = [*judge_folder(config.model), *judge_profile(config, serves_here=True)]
            findings += [finding.under(("applications", i, "args")) for finding in here]
            elsewhere = (*judge_device(config.target), *remark_classes(config, ours[i]))
            remarks += [remark.under(("applications", i, "args")) for remark in elsewhere]
    for i, config in configs.items():
        corpora = judge_corpora(config, ours[i], served_here)
        findings += [finding.under(("applications", i, "args")) for finding in corpora]
    findings += _judge_applications(source.data, ours, bool(own))
    findings += _judge_deployments(ours, judged)
    asked: tuple[Listener, ...] = ()
    if not own:
        file = ServeFile.model_validate(source.data)
        asked = tuple(listeners(file, configs))
        findings += repeated_ports(asked)
    misread = {finding.path for finding in source.findings}  # of these only the first cause is told
    findings = [*source.findings, *(finding for finding in findings if finding.path not in misread)]
    names = {str(ours[i].get("name", "default")): config for i, config in configs.items()}
    return Validated(source, names, asked, _placed(source, findings), _placed(source, remarks))


def _placed(source: YamlSource, findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """With their lines, in the order of the file."""
    placed = [replace(finding, line=finding.line or source.line_of(finding.path)) for finding in findings]
    return tuple(sorted(placed, key=lambda finding: finding.line or 0))


def _applications(data: object) -> list[Mapping[str, Any]]:
    entries = data.get("applications") if isinstance(data, Mapping) else None
    return [app if isinstance(app, Mapping) else {} for app in entries] if isinstance(entries, list) else []


def _is_ours(app: Mapping[str, Any]) -> bool:
    return str(app.get("import_path")).replace(":", ".") == IMPORT_PATH.replace(":", ".")


def _judge_applications(data: object, ours: Mapping[int, Mapping[str, Any]], faulty: bool) -> Iterator[Finding]:
    """Rules about applications. Where Serve's keys are `faulty`, or one looks like ours, ours is not missed besides."""
    apps = _applications(data)
    for i, app in enumerate(apps):
        path = ("applications", i, "import_path")
        if i not in ours and nearest(app.get("import_path"), [IMPORT_PATH]):
            hint, faulty = f"Did you mean {IMPORT_PATH}?", True
            yield Finding(path, "names no application", show(path, app["import_path"]), IMPORT_PATH, hint)
    if apps and not ours and not faulty:
        problem = "holds no application of Outrider"
        yield Finding(("applications",), problem, None, f"at least one with import_path {IMPORT_PATH}")
    if isinstance(data, Mapping) and data.get("applications") == []:
        yield Finding(("applications",), "is empty", None, f"at least one with import_path {IMPORT_PATH}")
    yield from _repeated(apps, "name", "default")
    yield from _repeated(apps, "route_prefix", "/")


def _repeated(apps: list[Mapping[str, Any]], key: str, default: str) -> Iterator[Finding]:
    seen: dict[object, int] = {}
    for i, app in enumerate(apps):
        value = app.get(key, default)
        if value is None:
            continue
        path: KeyPath = ("applications", i, key)
        if str(value) in seen:
            other = f"applications[{seen[str(value)]}]"
            yield Finding(path, f"is that of {other} already", show(path, value), "one of its own")
        seen.setdefault(str(value), i)


def _judge_deployments(ours: Mapping[int, Mapping[str, Any]], judged: Mapping[int, Args]) -> Iterator[Finding]:
    """Overrides of deployments that our application does not have, or that must stay as they are."""
    for i, app in ours.items():
        if judged[i].findings:
            continue  # which deployments there are depends on the pools
        config = ClusterConfig.model_validate(app.get("args") or {})
        known, scaled = deployment_names(config.pool_names), _scaled(config)
        entries = app.get("deployments")
        for j, entry in enumerate(entries if isinstance(entries, list) else []):
            if isinstance(entry, Mapping) and "name" in entry:
                path: KeyPath = ("applications", i, "deployments", j)
                yield from _judge_deployment(entry, path, known)
                yield from _judge_replicas(entry, path, scaled)


def _judge_deployment(entry: Mapping[str, Any], path: KeyPath, known: tuple[str, ...]) -> Iterator[Finding]:
    name, close = entry["name"], nearest(entry["name"], known)
    if name not in known:
        hint = None if close is None else f"Did you mean {close}?"
        yield Finding((*path, "name"), "names no deployment", show(path, name), ", ".join(known), hint)
    count = entry.get("num_replicas")
    if name == CONTROLLER and count not in (None, 1):
        yield Finding((*path, "num_replicas"), "must stay 1: there is one list of members", show(path, count), "1")
    if name == CONTROLLER and entry.get("autoscaling_config") is not None:
        problem = "must stay away: there is one list of members"
        yield Finding((*path, "autoscaling_config"), problem, show(path, entry["autoscaling_config"]))


def _judge_replicas(entry: Mapping[str, Any], path: KeyPath, scaled: Mapping[str, str]) -> Iterator[Finding]:
    """Numbers of replicas that would take the place of what our own settings say."""
    own = scaled.get(entry["name"])
    for key in ("num_replicas", "autoscaling_config"):
        if own is not None and entry.get(key) is not None:
            yield Finding(
                (*path, key), f"contradicts args.{own}", show(path, entry[key]), None, "Leave one of them out."
            )


def _scaled(config: ClusterConfig) -> dict[str, str]:
    """Where our settings let the number of replicas change, by deployment."""
    found = {TARGET: "target.autoscaling"} if config.target.autoscaling else {}
    found |= {GATEWAY: "gateway.autoscaling"} if config.gateway.autoscaling else {}
    for i, pool in enumerate(config.draft_pools):
        found |= {draft_deployment(pool.name): f"draft_pools[{i}].autoscaling"} if pool.autoscaling else {}
    return {**found, CONTROLLER: next(iter(found.values()))} if found else {}
