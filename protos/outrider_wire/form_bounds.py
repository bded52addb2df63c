"""Bounds of a prescribed form of the answer: JSON schema, regular expression or choices."""

from __future__ import annotations

import json

from outrider_runtime.errors import InvalidRequest, Words
from outrider_wire.requirements import check_count, check_text, check_texts, require
from outrider_wire.sampling import (
    MAX_ALL_CHOICES_CHARACTERS,
    MAX_CHOICE_TEXT_CHARACTERS,
    MAX_CHOICE_TEXTS,
    MAX_REGEX_CHARACTERS,
    MAX_SCHEMA_BYTES,
    MAX_SCHEMA_DEPTH,
    SamplingParams,
)


def check_form(params: SamplingParams) -> None:
    """Check that at most one form is prescribed, and its size.

    Raises:
        InvalidRequest: it is out of bounds, or together with something that it excludes.
    """
    if not params.is_structured:
        return
    given = [
        name
        for name, is_set in (
            ("json_schema", params.json_schema is not None),
            ("regex", params.regex is not None),
            ("choices", bool(params.choices)),
        )
        if is_set
    ]
    require(len(given) == 1, given[-1], Words(" and ".join(given)), "one form at most")
    require(not params.ignore_eos, "ignore_eos", True, f"false together with {given[0]}: a complete answer must end")
    if params.json_schema is not None:
        _check_schema(params.json_schema)
    if params.regex is not None:
        check_text("regex", params.regex)
        length = len(params.regex)
        require(
            1 <= length <= MAX_REGEX_CHARACTERS, "regex", Words(f"{length} characters"), f"1 to {MAX_REGEX_CHARACTERS}"
        )
    check_texts("choices", params.choices, MAX_CHOICE_TEXTS, MAX_CHOICE_TEXT_CHARACTERS)
    check_count("choices", sum(map(len, params.choices)), MAX_ALL_CHOICES_CHARACTERS, "characters")


def _check_schema(schema: str) -> None:
    check_text("json_schema", schema)
    size = len(schema.encode())
    require(
        size <= MAX_SCHEMA_BYTES, "json_schema", Words(f"{size} bytes"), f"at most {MAX_SCHEMA_BYTES} bytes of JSON"
    )
    try:
        parsed = json.loads(schema)
    except (ValueError, RecursionError) as error:
        raise InvalidRequest("json_schema", schema, "a JSON Schema, as JSON") from error
    require(isinstance(parsed, (dict, bool)), "json_schema", schema, "a JSON Schema: an object, true or false")
    depth = _depth(parsed)
    rule = f"at most {MAX_SCHEMA_DEPTH} levels of objects and arrays"
    require(depth <= MAX_SCHEMA_DEPTH, "json_schema", Words(f"{depth} levels"), rule)


def _depth(parsed: object) -> int:
    """Levels of objects and arrays, counted without recursion."""
    depth, level = 0, [parsed]
    while level := [item for item in level if isinstance(item, (dict, list))]:
        depth += 1
        level = [child for item in level for child in (item.values() if isinstance(item, dict) else item)]
    return depth
