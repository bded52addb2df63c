"""A YAML file with the lines of its keys. Finds what YAML itself lets pass: keys that are given twice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from outrider_cluster.config.finding import Finding, KeyPath
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
    """Repeated keys."""

    def line_of(self, path: KeyPath) -> int | None:
        """Line of the value at `path`, or of the nearest one around it."""
        for length in range(len(path), 0, -1):
            if path[:length] in self.lines:
                return self.lines[path[:length]]
        return None


def read_yaml(path: Path) -> YamlSource:
    """Read a file.

    Raises:
        InvalidConfig: it cannot be read, or is no YAML; the message names the line.
    """
    try:
        text = path.read_bytes()[: MAX_FILE_BYTES + 1].decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidConfig(f"{path}: cannot be read: {error}") from error
    if len(text) > MAX_FILE_BYTES:
        raise InvalidConfig(f"{path}: longer than {MAX_FILE_BYTES} bytes")
    return parse_yaml(text, str(path))


def parse_yaml(text: str, name: str) -> YamlSource:
    """Parse the text of a file called `name`.

    Raises:
        InvalidConfig: it is no YAML; the message names the line.
    """
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        data = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise InvalidConfig(f"{name}{_line(error)}: not YAML: {_problem(error)}") from error
    lines: _Lines = {}
    return YamlSource(data, lines, tuple(_walk(node, (), lines, set())))


def _walk(node: yaml.Node | None, path: KeyPath, lines: _Lines, seen: set[int]) -> Iterator[Finding]:
    if node is None or id(node) in seen:  # an alias: its lines are those of the anchor
        return
    seen.add(id(node))
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
        here = (*path, str(key.value))
        line = key.start_mark.line + 1
        if here in lines:
            problem = f"is given again, first in line {lines[here]}"
            yield Finding(here, problem, line=line, suggestion="The last one would win silently: remove one.")
        lines.setdefault(here, line)
        yield from _walk(inner, here, lines, seen)


def _line(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    return "" if mark is None else f":{mark.line + 1}"


def _problem(error: yaml.YAMLError) -> str:
    context, problem = getattr(error, "context", None), getattr(error, "problem", None)
    return ", ".join(part for part in (problem, context) if part) or str(error).splitlines()[0]
