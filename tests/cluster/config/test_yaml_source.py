"""What is wrong with a file before its keys are looked at, and where keys stand."""

from __future__ import annotations

from pathlib import Path

import pytest

from outrider_cluster.config.validate import validate_source
from outrider_cluster.config.yaml_source import parse_yaml, read_yaml
from outrider_runtime.errors import InvalidConfig


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: 1\nb: [1, 2\n", "x.yaml:3: not YAML"),
        ("a: 1\n  b: 2\n", "x.yaml:2: not YAML"),
        ("a:\n\t- 1\n", "x.yaml:2: not YAML"),
        ("a: !!python/object:os.system {}\n", "x.yaml:1: not YAML"),
        ("a: *nowhere\n", "x.yaml:1: not YAML"),
    ],
)
def test_broken_yaml_is_refused_with_its_line(text: str, words: str) -> None:
    with pytest.raises(InvalidConfig) as caught:
        parse_yaml(text, "x.yaml")
    assert str(caught.value).startswith(words)


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfig, match="cannot be read"):
        read_yaml(tmp_path / "absent.yaml")
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidConfig, match="cannot be read"):
        read_yaml(tmp_path / "binary.yaml")
    with pytest.raises(InvalidConfig, match="cannot be read"):
        read_yaml(tmp_path)


def test_a_key_that_is_given_twice_is_found() -> None:
    (found,) = parse_yaml("a: 1\nb: 2\na: 3\n", "x").findings
    assert (found.path, found.line) == (("a",), 3)
    assert "first in line 1" in str(found)


def test_lines_are_known_for_keys_and_entries() -> None:
    source = parse_yaml("a:\n  - b: 1\n  - b: 2\n    c: 3\n", "x")
    assert source.line_of(("a", 1, "c")) == 4
    assert source.line_of(("a", 1, "missing")) == 3
    assert source.line_of(("missing",)) is None


def test_anchors_and_merge_keys_are_no_faults() -> None:
    text = "base: &base {x: 1}\nother:\n  <<: *base\n  x: 2\nlist: [*base, *base]\n"
    assert parse_yaml(text, "x").findings == ()


@pytest.mark.parametrize("text", ["", "[]", "just text", "3", "applications: 3", "applications: [3]", "? [1]\n: 2"])
def test_a_file_of_another_shape_is_a_finding_and_no_crash(text: str) -> None:
    try:
        source = parse_yaml(text, "x")
    except InvalidConfig:
        return  # YAML itself does not take it
    assert validate_source(source).findings


def test_findings_come_in_the_order_of_the_file() -> None:
    text = "aplications: []\nhttp_options:\n  prt: 1\nproxy_location: Nowhere\n"
    lines = [found.line for found in validate_source(parse_yaml(text, "x")).findings if found.line is not None]
    assert lines == sorted(lines)
    assert lines == [1, 3, 4]
