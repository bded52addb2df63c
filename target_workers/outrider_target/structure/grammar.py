"""Grammars of the forms that a request may prescribe, and the bounds that compiling and matching them keep."""

from __future__ import annotations

import json
from dataclasses import dataclass

from llguidance import LLMatcher, LLParserLimits

from outrider_target.structure.ascii_classes import in_ascii, schema_in_ascii
from outrider_wire.sampling import SamplingParams

LIMITS = LLParserLimits(
    max_items_in_row=2_000,
    initial_lexer_fuel=1_000_000,
    step_lexer_fuel=200_000,
    step_max_items=50_000,
    max_lexer_states=20_000,
    max_grammar_size=200_000,
    verbose_errors=False,
)
"""In steps of the library's own counting: a token takes some 15 ms at worst, an automaton some 40 MB."""


@dataclass(frozen=True, slots=True)
class Grammar:
    """A form in the library's language, with the field of the request that it came from."""

    field: str
    value: object
    text: str


def grammar_of(sampling: SamplingParams) -> Grammar:
    """The grammar of the form that a checked request prescribes."""
    if sampling.json_schema is not None:
        text = LLMatcher.grammar_from_json_schema(schema_in_ascii(sampling.json_schema))
        return Grammar("json_schema", sampling.json_schema, text)
    if sampling.regex is not None:
        return Grammar("regex", sampling.regex, LLMatcher.grammar_from_regex(in_ascii(sampling.regex)))
    alternatives = " | ".join(json.dumps(text, ensure_ascii=False) for text in sampling.choices)
    return Grammar("choices", sampling.choices, LLMatcher.grammar_from_lark(f"start: {alternatives}"))
