"""The documents name only what exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from outrider_doubles.repository import ROOT, documents, relative

from outrider_cluster.config.validate import validate_file

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
LINK_TEXT = re.compile(r"\[`([^`\s]+)`\]\(")
YAML_BLOCK = re.compile(r"^```yaml\n(.*?)^```", re.MULTILINE | re.DOTALL)
QUOTED = re.compile(r"`([^`\s]+)`")
FILE_ENDINGS = (".py", ".proto", ".md", ".toml", ".json")
MAKE_TARGET = re.compile(r"^make ([a-z-]+)|`make ([a-z-]+)`", re.MULTILINE)


@pytest.mark.parametrize("page", documents(), ids=relative)
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    targets = [target.split("#")[0] for target in LINK.findall(page.read_text("utf-8")) if "://" not in target]
    assert [target for target in targets if target and not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", documents(), ids=relative)
def test_a_path_as_the_text_of_a_link_starts_at_the_root(page: Path) -> None:
    named = [text for text in LINK_TEXT.findall(page.read_text("utf-8")) if "/" in text and text.endswith(FILE_ENDINGS)]
    assert [name for name in named if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("page", documents(), ids=relative)
def test_every_file_named_by_a_page_exists(page: Path) -> None:
    text = LINK.sub("", page.read_text("utf-8"))
    named = [name for name in QUOTED.findall(text) if "/" in name and name.endswith(FILE_ENDINGS)]
    missing = [name for name in named if not _exists(name, page)]
    assert missing == []


@pytest.mark.parametrize("page", documents(), ids=relative)
def test_every_make_target_named_by_a_page_exists(page: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    named = {start or quoted for start, quoted in MAKE_TARGET.findall(page.read_text("utf-8"))}
    assert named <= targets


def test_the_architecture_page_names_every_package() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    packages = [relative(path.parent) for path in ROOT.glob("*/outrider_*/__init__.py")]
    assert [package for package in packages if package not in text] == []


def test_the_config_in_the_readme_is_valid(tmp_path: Path) -> None:
    (config,) = YAML_BLOCK.findall((ROOT / "README.md").read_text("utf-8"))
    file = tmp_path / "cluster.yaml"
    file.write_text(config)
    assert [str(finding) for finding in validate_file(file).findings] == []


def test_the_cluster_file_of_the_repository_is_valid() -> None:
    assert [str(finding) for finding in validate_file(ROOT / "cluster.yaml").findings] == []


def _exists(name: str, page: Path) -> bool:
    """A file is named from the root of the repository, or from the page's own folder."""
    return (ROOT / name).exists() or (page.parent / name).exists()
