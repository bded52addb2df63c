"""Cluster files that are good but for one change, and what is found in them."""

from __future__ import annotations

from typing import Any

import yaml

from outrider_cluster.config.finding import format_path
from outrider_cluster.config.validate import validate_source
from outrider_cluster.config.yaml_source import parse_yaml
from outrider_doubles.repository import ROOT


def good() -> Any:
    """The file of the repository, as a document to change."""
    return yaml.safe_load((ROOT / "cluster.yaml").read_text(encoding="utf-8"))


def changed(change: str, value: Any) -> Any:
    """A good document with `value` at the place `change`: keys and numbers with dots."""
    data = good()
    *parents, last = change.split(".")
    place = data
    for key in parents:
        place = place[int(key)] if isinstance(place, list) else place[key]
    place[last] = value
    return data


def findings(data: Any) -> dict[str, str]:
    """What is wrong with a document, by path."""
    source = parse_yaml(yaml.safe_dump(data, sort_keys=False), "cluster.yaml")
    return {format_path(found.path): str(found) for found in validate_source(source).findings}
