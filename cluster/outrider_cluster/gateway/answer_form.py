"""The form that a request prescribes for its answer, in all spellings: OpenAI's and both generations of vLLM's."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field

from outrider_cluster.gateway.body_model import Body, NeutralOnly, neutral
from outrider_runtime.errors import InvalidRequest
from outrider_wire.sampling import MAX_CHOICE_TEXTS

_ANY_OBJECT = '{"type":"object"}'


def _schema_or_text(value: object) -> object:
    if not isinstance(value, str | bool | dict):
        raise ValueError("an object, a JSON text, true or false")
    return value


Schema = Annotated[str | bool | dict[str, Any], BeforeValidator(_schema_or_text)]
"""A JSON Schema, or the text of one."""


@dataclass(frozen=True, slots=True)
class AnswerForm:
    """One prescribed form: exactly one of the three is set."""

    field: str
    """Where the client wrote it."""
    json_schema: str | None = None
    regex: str | None = None
    choices: tuple[str, ...] = ()


class JsonSchemaFormat(Body):
    """`json_schema` of OpenAI's `response_format`. `strict` changes nothing: schemas are always kept to."""

    ignored: ClassVar[frozenset[str]] = frozenset({"description", "strict"})

    name: str | None = None
    # `schema` is taken by pydantic.
    schema_: Schema = Field(alias="schema")


class ResponseFormat(Body):
    """OpenAI's `response_format`."""

    type: Literal["text", "json_object", "json_schema"]
    json_schema: JsonSchemaFormat | None = None

    def forms(self) -> Iterator[AnswerForm]:
        """The prescribed form, if there is one.

        Raises:
            InvalidRequest: type and schema do not belong together.
        """
        if (self.type == "json_schema") != (self.json_schema is not None):
            raise InvalidRequest("response_format.json_schema", None, "a schema exactly where the type is json_schema")
        if self.type == "json_object":
            yield AnswerForm("response_format", json_schema=_ANY_OBJECT)
        if self.json_schema is not None:
            schema = schema_text("response_format.json_schema.schema", self.json_schema.schema_)
            yield AnswerForm("response_format.json_schema.schema", json_schema=schema)


class StructuredOutputs(Body):
    """vLLM's `structured_outputs`."""

    neutral_only: ClassVar[Mapping[str, NeutralOnly]] = {
        "grammar": neutral(),
        "structural_tag": neutral(),
        "disable_any_whitespace": neutral(False),
        "disable_additional_properties": neutral(False),
        "whitespace_pattern": neutral(),
    }

    json_: Schema | None = Field(default=None, alias="json")
    json_object: bool | None = None
    regex: str | None = None
    choice: Annotated[list[str], Field(max_length=MAX_CHOICE_TEXTS, fail_fast=True)] | None = None

    def forms(self) -> Iterator[AnswerForm]:
        """The prescribed forms."""
        return vllm_forms("structured_outputs.", self.json_, self.json_object, self.regex, self.choice)


def vllm_forms(
    prefix: str, schema: Schema | None, json_object: bool | None, regex: str | None, choice: list[str] | None
) -> Iterator[AnswerForm]:
    """Forms in vLLM's words; `prefix` and the word name the field.

    Raises:
        InvalidRequest: there is no choice among the choices.
    """
    if schema is not None:
        yield AnswerForm(f"{prefix}json", json_schema=schema_text(f"{prefix}json", schema))
    if json_object:
        yield AnswerForm(f"{prefix}json_object", json_schema=_ANY_OBJECT)
    if regex is not None:
        yield AnswerForm(f"{prefix}regex", regex=regex)
    if choice is not None:
        if not choice:
            raise InvalidRequest(f"{prefix}choice", choice, "1 text at least")
        yield AnswerForm(f"{prefix}choice", choices=tuple(choice))


def schema_text(field: str, schema: Schema) -> str:
    """A schema as JSON; vLLM takes it as text, too.

    Raises:
        InvalidRequest: it cannot be written as JSON.
    """
    try:
        return schema if isinstance(schema, str) else json.dumps(schema, ensure_ascii=False, allow_nan=False)
    except (ValueError, RecursionError) as error:
        raise InvalidRequest(field, None, "a JSON Schema without NaN, infinities and endless nesting") from error


def only_form(forms: list[AnswerForm]) -> AnswerForm | None:
    """The one form of a request, if it prescribes any.

    Raises:
        InvalidRequest: it prescribes several.
    """
    if len(forms) > 1:
        raise InvalidRequest(forms[1].field, "a second form", f"one form; {forms[0].field} is another one")
    return forms[0] if forms else None
