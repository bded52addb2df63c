"""Strict, offline validation of a whole Serve config file: Serve's keys and ours, all faults at once.

Knows the file only: whether a model exists, or a port is free, shows when it is deployed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from outrider_cluster.config.args_check import Args, read_args
from outrider_cluster.config.cluster import ClusterConfig
from outrider_cluster.config.deployments import deployment_names
from outrider_cluster.config.finding import Finding, KeyPath, nearest, show
from outrider_cluster.config.ports import repeated_ports
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
    findings: tuple[Finding, ...]


def validate_file(path: Path) -> Validated:
    """Validate the file at `path`.

    Raises:
        InvalidConfig: it cannot be read, or is no YAML.
    """
    return validate_source(read_yaml(path))


def validate_source(source: YamlSource) -> Validated:
    """Validate what a file says; findings are in the order of the file."""
    findings = [*source.findings, *check_settings(ServeFile, source.data)]
    ours = {i: app for i, app in enumerate(_applications(source.data)) if _is_ours(app)}
    judged = {i: read_args(app.get("args")) for i, app in ours.items()}
    for i, args in judged.items():
        findings += [finding.under(("applications", i, "args")) for finding in args.findings]
    configs = {i: ClusterConfig.model_validate(ours[i].get("args") or {}) for i in ours if not judged[i].findings}
    findings += _judge_applications(source.data, ours)
    findings += _judge_deployments(ours, judged)
    if not check_settings(ServeFile, source.data):
        findings += repeated_ports(ServeFile.model_validate(source.data), configs)
    placed = [replace(finding, line=finding.line or source.line_of(finding.path)) for finding in findings]
    placed.sort(key=lambda finding: finding.line or 0)
    names = {str(ours[i].get("name", "default")): config for i, config in configs.items()}
    return Validated(source, names, tuple(placed))


def _applications(data: object) -> list[Mapping[str, Any]]:
    entries = data.get("applications") if isinstance(data, Mapping) else None
    return [app if isinstance(app, Mapping) else {} for app in entries] if isinstance(entries, list) else []


def _is_ours(app: Mapping[str, Any]) -> bool:
    return str(app.get("import_path")).replace(":", ".") == IMPORT_PATH.replace(":", ".")


def _judge_applications(data: object, ours: Mapping[int, Mapping[str, Any]]) -> Iterator[Finding]:
    apps = _applications(data)
    for i, app in enumerate(apps):
        path = ("applications", i, "import_path")
        if i not in ours and nearest(app.get("import_path"), [IMPORT_PATH]):
            hint = f"Did you mean {IMPORT_PATH}?"
            yield Finding(path, "names no application", show(path, app["import_path"]), IMPORT_PATH, hint)
    if apps and not ours:
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
        known = deployment_names(ClusterConfig.model_validate(app.get("args") or {}).pool_names)
        entries = app.get("deployments")
        for j, entry in enumerate(entries if isinstance(entries, list) else []):
            if isinstance(entry, Mapping) and "name" in entry:
                path: KeyPath = ("applications", i, "deployments", j)
                yield from _judge_deployment(entry, path, known)


def _judge_deployment(entry: Mapping[str, Any], path: KeyPath, known: tuple[str, ...]) -> Iterator[Finding]:
    name, close = entry["name"], nearest(entry["name"], known)
    if name not in known:
        hint = None if close is None else f"Did you mean {close}?"
        yield Finding((*path, "name"), "names no deployment", show(path, name), ", ".join(known), hint)
    count = entry.get("num_replicas")
    if name == "Controller" and count not in (None, 1):
        yield Finding((*path, "num_replicas"), "must stay 1: there is one list of members", show(path, count), "1")
