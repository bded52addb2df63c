"""A YAML loader that takes only documents which can be walked: not too deep, not too large, and without cycles.

Aliases let a short file stand for an endless one. What each node stands for is counted while the file is read, so that
everything behind this loader may recurse.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import yaml

from outrider_runtime.errors import Words, shorten

MAX_LEVELS = 64
MAX_NODES = 1 << 20


class Unacceptable(yaml.MarkedYAMLError):
    """YAML, but nothing that a config may be."""

    def __init__(self, problem: str, mark: yaml.Mark | None) -> None:
        super().__init__(problem=problem, problem_mark=mark)


class _Extent(NamedTuple):
    """What a node stands for, with all aliases written out."""

    levels: int
    nodes: int


class BoundedLoader(yaml.SafeLoader):
    """PyYAML's safe loader with bounds. Its errors are all `yaml.YAMLError`."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._level = 0
        self._extents: dict[int, _Extent] = {}
        """Of finished nodes, by identity; an alias to one that is not here yet leads back into itself."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """PyYAML's, with the extent of what it returns."""
        mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
        self._level += 1
        if self._level > MAX_LEVELS:
            raise Unacceptable(f"nested deeper than {MAX_LEVELS} levels", mark)
        is_alias = self.check_event(yaml.AliasEvent)
        node = super().compose_node(parent, index)
        self._level -= 1
        if node is not None and not is_alias:
            self._extents[id(node)] = self._measure(node, mark)
        elif node is not None and id(node) not in self._extents:
            raise Unacceptable("an alias leads back to what holds it", mark)
        return node

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """PyYAML's; what its constructors raise at values that they do not understand becomes an error with a place."""
        try:
            return super().construct_object(node, deep)
        except (ValueError, TypeError, LookupError, AttributeError, OverflowError) as error:
            kind = node.tag.rpartition(":")[2]
            raise Unacceptable(f"{shorten(Words(node.value))} is no {kind}", node.start_mark) from error

    def _measure(self, node: yaml.Node, mark: yaml.Mark) -> _Extent:
        if isinstance(node, yaml.ScalarNode) and any("\ud800" <= c <= "\udfff" for c in node.value):
            raise Unacceptable("holds half a character (a lone surrogate), which is no text", mark)
        inner = [self._extents[id(child)] for child in _children(node)]
        extent = _Extent(1 + max((e.levels for e in inner), default=0), 1 + sum(e.nodes for e in inner))
        if extent.levels > MAX_LEVELS:
            raise Unacceptable(f"nested deeper than {MAX_LEVELS} levels, with its aliases", mark)
        if extent.nodes > MAX_NODES:
            raise Unacceptable(f"stands for more than {MAX_NODES} values, with its aliases", mark)
        return extent


def _children(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [part for pair in node.value for part in pair]
    return list(node.value) if isinstance(node, yaml.SequenceNode) else []
