"""Every spelling of a prescribed form means one of three things, and no two of them come together."""

from __future__ import annotations

import json

import pytest

from outrider_cluster.gateway.openai_models import CompletionBody
from outrider_runtime.errors import InvalidRequest

SCHEMA = {"type": "object", "properties": {"é": {"type": "integer"}}}


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        (
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "x", "schema": SCHEMA},
                }
            },
            "response_format.json_schema.schema",
        ),
        ({"structured_outputs": {"json": SCHEMA}}, "structured_outputs.json"),
        ({"structured_outputs": {"json": json.dumps(SCHEMA)}}, "structured_outputs.json"),
        ({"guided_json": SCHEMA}, "guided_json"),
    ],
)
def test_a_schema_arrives_as_json(fields: dict[str, object], where: str) -> None:
    body = CompletionBody.parse({"prompt": "x", **fields})
    form = body.form()
    assert form is not None and form.field == where
    assert json.loads(body.sampling(16).json_schema or "") == SCHEMA


@pytest.mark.parametrize("field", ["response_format", "structured_outputs"])
def test_any_json_object_is_a_schema(field: str) -> None:
    wish = {"type": "json_object"} if field == "response_format" else {"json_object": True}
    assert CompletionBody.parse({"prompt": "x", field: wish}).sampling(16).json_schema == '{"type":"object"}'


def test_expressions_and_choices_have_two_spellings_each() -> None:
    for fields in ({"structured_outputs": {"regex": "a+"}}, {"guided_regex": "a+"}):
        assert CompletionBody.parse({"prompt": "x", **fields}).sampling(16).regex == "a+"
    for fields in ({"structured_outputs": {"choice": ["a", "b"]}}, {"guided_choice": ["a", "b"]}):
        assert CompletionBody.parse({"prompt": "x", **fields}).sampling(16).choices == ("a", "b")


def test_plain_text_and_nulls_prescribe_nothing() -> None:
    for fields in ({"response_format": {"type": "text"}}, {"structured_outputs": None}, {"structured_outputs": {}}):
        assert not CompletionBody.parse({"prompt": "x", **fields}).sampling(16).is_structured


def test_two_forms_are_refused_by_the_name_of_the_second() -> None:
    fields = {"response_format": {"type": "json_object"}, "guided_choice": ["a"]}
    with pytest.raises(InvalidRequest) as refusal:
        CompletionBody.parse({"prompt": "x", **fields}).sampling(16)
    assert refusal.value.field == "guided_choice" and "response_format" in refusal.value.allowed
