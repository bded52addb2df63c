r"""Regular expressions whose \d, \w and \s mean ASCII, as in JSON Schema (ECMA-262) and to those who read the answers.

The grammar library means all of Unicode: a model may then write a year in digits that no parser of dates reads.
"""

from __future__ import annotations

import json
import re
from typing import Any

_SETS = {
    "d": "[0-9]",
    "D": "[^0-9]",
    "w": "[0-9A-Za-z_]",
    "W": "[^0-9A-Za-z_]",
    "s": r"[\t-\r ]",
    "S": r"[^\t-\r ]",
}
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_DATA = frozenset({"const", "enum", "default", "examples"})
"""Keys of a schema whose values are no schemas."""


def in_ascii(expression: str) -> str:
    """The same expression with classes spelled out; the library's classes may stand in each other."""
    return _ESCAPE.sub(lambda escape: _SETS.get(escape[1], escape[0]), expression)


def schema_in_ascii(schema: str) -> str:
    """A JSON schema with `in_ascii` for its patterns; the text itself where it has no escapes, or is no JSON."""
    if "\\" not in schema:
        return schema
    try:
        return json.dumps(_rewritten(json.loads(schema)), ensure_ascii=False)
    except (ValueError, RecursionError):
        return schema


def _rewritten(value: Any) -> Any:
    if isinstance(value, list):
        return [_rewritten(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {key: _entry(key, inner) for key, inner in value.items()}


def _entry(key: str, value: Any) -> Any:
    if key in _DATA:
        return value
    if key == "pattern" and isinstance(value, str):
        return in_ascii(value)
    if key == "patternProperties" and isinstance(value, dict):
        return {in_ascii(name): _rewritten(inner) for name, inner in value.items()}
    if key == "properties" and isinstance(value, dict):  # names, which may be any of the above
        return {name: _rewritten(inner) for name, inner in value.items()}
    return _rewritten(value)
