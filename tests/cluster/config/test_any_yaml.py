"""Whatever a file holds, it is judged: faults are findings that can be printed and never other exceptions."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from outrider_doubles.repository import ROOT

from outrider_cluster.config.validate import validate_source
from outrider_cluster.config.yaml_loader import MAX_LEVELS
from outrider_cluster.config.yaml_source import parse_yaml
from outrider_runtime.errors import InvalidConfig

GOOD = (ROOT / "cluster.yaml").read_text(encoding="utf-8")
LAUGHS = "a0: &a0 {x: 1, y: 2}\n" + "".join(f"a{i}: &a{i} {{x: *a{i - 1}, y: *a{i - 1}}}\n" for i in range(1, 40))
LADDER = "a0: &a0 [1]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}]\n" for i in range(1, 500))


def judge(text: str) -> str:
    """All that is said about a text, as a terminal or a file could take it."""
    try:
        said = "\n".join(str(finding) for finding in validate_source(parse_yaml(text, "x.yaml")).findings)
    except InvalidConfig as error:
        said = str(error)
    said.encode("utf-8")
    return said


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("applications: &a [*a]\n", "x.yaml:1: not acceptable: an alias leads back to what holds it"),
        ("a: &a {b: {c: *a}}\n", "x.yaml:1: not acceptable: an alias leads back"),
        ("a: 1\nb: " + "[" * 3000 + "]" * 3000, "x.yaml:2: not acceptable: nested deeper than"),
        ("{a: " * 3000 + "1" + "}" * 3000, "x.yaml:1: not acceptable: nested deeper than"),
        (LADDER, f"x.yaml:{MAX_LEVELS}: not acceptable: nested deeper than"),
        (LAUGHS, "not acceptable: stands for more than"),
        ("a: 2001-99-99\n", "x.yaml:1: not acceptable: 2001-99-99 is no timestamp"),
        ("a: !!int ''\n", "x.yaml:1: not acceptable:"),
        ("a: !!bool maybe\n", "x.yaml:1: not acceptable: maybe is no bool"),
        ("a: !!timestamp x\n", "x.yaml:1: not acceptable: x is no timestamp"),
        ("a: 1" + "0" * 5000 + "\n", "x.yaml:1: not acceptable: 1000"),
        ("? [1]\n: 2\n", "x.yaml:1: not YAML: found unhashable key"),
        ('"a\\nb": 1\n', "a\\u000ab: unknown key"),
        ('a: 1\n"b\\uD800": 1\n', "x.yaml:2: not acceptable: holds half a character"),
    ],
    ids=range(14),
)
def test_texts_that_no_config_may_be_are_refused_with_their_line(text: str, words: str) -> None:
    assert words in judge(text)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("8:20", "YAML reads it as 500, in base 60, got 8:20"),
        ("010", "YAML reads it as 8, in base 8, got 010"),
        (".inf", "must be a finite number"),
        ("1.0e+400", "must be a finite number"),
        ("2001-02-03", "YAML takes it for a date, got 2001-02-03"),
        ("!!binary aGk=", "is of YAML's kind binary, got aGk="),
        ("!!set {a}", "is of YAML's kind set"),
    ],
)
@pytest.mark.parametrize("key", ["http_port: 8000", "served_name: smollm2-135m"])
def test_a_value_that_yaml_misreads_is_one_finding_with_its_line(key: str, value: str, words: str) -> None:
    name = key.split(":")[0]
    source = parse_yaml(GOOD.replace(key, f"{name}: {value}"), "x.yaml")
    (found,) = validate_source(source).findings
    assert words in str(found)
    assert found.line == next(i for i, line in enumerate(GOOD.splitlines(), 1) if key in line)


def test_numbers_in_other_spellings_of_json_stay_numbers() -> None:
    text = GOOD.replace("http_port: 8000", "http_port: 0x1F40").replace("num_threads: 2", "num_threads: 0")
    assert judge(text).count("num_threads") == 1
    assert "http_port" not in judge(text)


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.binary(max_size=3)
keys = st.text(max_size=3) | st.integers() | st.none() | st.booleans() | st.sampled_from(["name", "method", "source"])
values = st.recursive(
    scalars | st.dates(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=150)
@given(st.data(), values)
def test_any_value_at_any_place_of_a_good_file_is_judged(data: st.DataObject, value: Any) -> None:
    document = yaml.safe_load(GOOD)
    places = list(_places(document))
    holder, key = data.draw(st.sampled_from(places))
    holder[key] = value
    judge(yaml.safe_dump(document, sort_keys=False, allow_unicode=True))


@settings(max_examples=300)
@given(st.text(alphabet="ab:-[]{},&*!?|>'\"#%@ \n\t<0.~\\", max_size=40))
def test_any_text_is_judged(text: str) -> None:
    judge(text)


@settings(max_examples=100)
@given(st.integers(0, len(GOOD)), st.integers(0, 30), st.text(max_size=6))
def test_a_good_file_with_any_damage_is_judged(start: int, removed: int, put: str) -> None:
    judge(GOOD[:start] + put + GOOD[start + removed :])


def _places(value: Any) -> Any:
    """Every place of a document that could hold something else, as what holds it and the key there."""
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in entries:
        yield value, key
        yield from _places(inner)
