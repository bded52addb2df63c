"""The repository as the house tests see it: where it is, and which files are ours."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
SOURCE_ROOTS = ("runtime", "protos", "kernels", "draft_workers", "target_workers", "cluster")
_OTHER_PYTHON = ("tests", "benchmarks", "examples")


def relative(path: Path) -> str:
    """`path` as it is written in a message: from the root of the repository."""
    return path.relative_to(ROOT).as_posix()


def source_files() -> list[Path]:
    """Hand-written Python files that are shipped."""
    files = (file for root in SOURCE_ROOTS for file in (ROOT / root).rglob("*.py"))
    return sorted(file for file in files if not is_generated(file))


def python_files() -> list[Path]:
    """All hand-written Python files, tests and scripts among them."""
    others = (file for folder in _OTHER_PYTHON for file in (ROOT / folder).rglob("*.py"))
    return sorted([*source_files(), *others])


def proto_files() -> list[Path]:
    """The protocol's sources."""
    return sorted((ROOT / "protos").rglob("*.proto"))


def documents() -> list[Path]:
    """Every Markdown page of the repository."""
    folders = (ROOT / folder for folder in (*SOURCE_ROOTS, *_OTHER_PYTHON, "docs"))
    return sorted([*ROOT.glob("*.md"), *(page for folder in folders for page in folder.rglob("*.md"))])


def is_generated(file: Path) -> bool:
    """Whether `file` comes out of the protobuf compiler."""
    return file.is_relative_to(ROOT / "protos" / "outrider")
