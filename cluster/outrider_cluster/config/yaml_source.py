"""A YAML file with the lines of its keys. Finds what YAML itself lets pass, such as keys that are given twice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from outrider_cluster.config.finding import Finding, KeyPath
from outrider_cluster.config.yaml_loader import BoundedLoader, Unacceptable
from outrider_cluster.config.yaml_scalars import judge_node
from outrider_runtime.errors import InvalidConfig

MAX_FILE_BYTES = 1 << 20
_Lines: TypeAlias = dict[KeyPath, int]


@dataclass(frozen=True, slots=True)
class YamlSource:
    """What a file says, and where it says it."""

    data: Any
    lines: Mapping[KeyPath, int]
    """Line of each key and list entry, from 1."""
    findings: tuple[Finding, ...]
    """Repeated keys, and values that YAML misreads or that a config cannot hold."""

    def line_of(self, path: KeyPath) -> int | None:
        """Line of the value at `path`, or of the nearest one around it."""
        for length in range(len(path), 0, -1):
            if path[:length] in self.lines:
                return self.lines[path[:length]]
        return None


def read_yaml(path: Path) -> YamlSource:
    """Read a file.

    Raises:
        InvalidConfig: it cannot be read, or is no YAML that a config may be; the message names the line.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise InvalidConfig(f"{path}: cannot be read: {str(error.strerror).lower()}") from error
    if len(content) > MAX_FILE_BYTES:
        raise InvalidConfig(f"{path}: longer than {MAX_FILE_BYTES} bytes")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InvalidConfig(f"{path}:{line}: cannot be read: it is not text in UTF-8") from error
    return parse_yaml(text, str(path))


def parse_yaml(text: str, name: str) -> YamlSource:
    """Parse the text of a file called `name`.

    Raises:
        InvalidConfig: it is no YAML, or none that a config may be; the message names the line.
    """
    lines: _Lines = {}
    try:
        loader = BoundedLoader(text)
        node = loader.get_single_node()
        findings = tuple(_walk(node, (), lines, set()))  # before values are made, which writes merge keys out
        data = None if node is None else loader.construct_document(node)
    except yaml.YAMLError as error:
        kind = "not acceptable" if isinstance(error, Unacceptable) else "not YAML"
        raise InvalidConfig(f"{name}{_line(error)}: {kind}: {_problem(error)}") from error
    return YamlSource(data, lines, findings)


def _walk(node: yaml.Node | None, path: KeyPath, lines: _Lines, seen: set[int]) -> Iterator[Finding]:
    if node is None or id(node) in seen:  # an alias: its lines are those of the anchor
        return
    seen.add(id(node))
    odd = judge_node(node, path)
    if odd is not None:
        yield replace(odd, line=node.start_mark.line + 1)
    if isinstance(node, yaml.SequenceNode):
        for i, inner in enumerate(node.value):
            lines[(*path, i)] = inner.start_mark.line + 1
            yield from _walk(inner, (*path, i), lines, seen)
    elif isinstance(node, yaml.MappingNode):
        yield from _walk_mapping(node, path, lines, seen)


def _walk_mapping(node: yaml.MappingNode, path: KeyPath, lines: _Lines, seen: set[int]) -> Iterator[Finding]:
    for key, inner in node.value:
        if key.tag == "tag:yaml.org,2002:merge":
            continue
        here = (*path, _spelling(key))
        line = key.start_mark.line + 1
        if here in lines:
            problem = f"is given again, first in line {lines[here]}"
            yield Finding(here, problem, line=line, suggestion="The last one would win silently: remove one.")
        lines.setdefault(here, line)
        yield from _walk(inner, here, lines, seen)


def _spelling(key: yaml.Node) -> str:
    """A key as findings name it: one that YAML takes for something else than text as JSON would write that."""
    kind = key.tag.rpartition(":")[2]
    if kind == "null":
        return "null"
    return str(key.value) if kind != "bool" else str(key.value.lower() in ("yes", "true", "on")).lower()


def _line(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    return "" if mark is None else f":{mark.line + 1}"


def _problem(error: yaml.YAMLError) -> str:
    context, problem = getattr(error, "context", None), getattr(error, "problem", None)
    return ", ".join(part for part in (problem, context) if part) or str(error).splitlines()[0]
