"""Values that YAML reads otherwise than people write them, or that a config cannot hold: Ray takes it as JSON."""

from __future__ import annotations

import math
import re

import yaml

from outrider_cluster.config.finding import Finding, KeyPath, show
from outrider_runtime.errors import Words

_PLAIN_TAGS = {"str", "int", "float", "bool", "null", "seq", "map"}
_OLD_OCTAL = re.compile(r"[-+]?0[0-7_]+")
_QUOTE = "Put it in quotes if it is text."


def judge_node(node: yaml.Node, path: KeyPath) -> Finding | None:
    """What is wrong with a value as such, whatever key it belongs to; None if nothing is."""
    kind = node.tag.removeprefix("tag:yaml.org,2002:")
    if kind not in _PLAIN_TAGS:
        problem = "YAML takes it for a date" if kind == "timestamp" else f"is of YAML's kind {kind}"
        hint = _QUOTE if kind == "timestamp" else f"Leave !!{kind} out."
        return Finding(path, problem, _shown(node, path), "text, numbers, true, false, lists and mappings", hint)
    if not isinstance(node, yaml.ScalarNode):
        return None
    if kind == "int" and (":" in node.value or _OLD_OCTAL.fullmatch(node.value)):
        base = 60 if ":" in node.value else 8
        problem = f"YAML reads it as {yaml.safe_load(node.value)}, in base {base}"
        return Finding(path, problem, _shown(node, path), None, f"Write the number without {':0'[base == 8]}. {_QUOTE}")
    if kind == "float" and not math.isfinite(yaml.safe_load(node.value)):
        return Finding(path, "must be a finite number", _shown(node, path))
    return None


def _shown(node: yaml.Node, path: KeyPath) -> str | None:
    return show(path, Words(node.value)) if isinstance(node, yaml.ScalarNode) else None
