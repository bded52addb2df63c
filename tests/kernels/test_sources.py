"""Kernels are told apart by what is in their files."""

from __future__ import annotations

from pathlib import Path

from outrider_kernels.sources import digest_of, kernels_version


def test_any_change_of_a_source_is_another_version(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text("a = 1\n")
    (tmp_path / "notes.txt").write_text("no source\n")
    seen = {before := digest_of(tmp_path)}
    (tmp_path / "notes.txt").write_text("still none\n")
    assert digest_of(tmp_path) == before
    (tmp_path / "one.py").write_text("a = 2\n")
    seen.add(digest_of(tmp_path))
    (tmp_path / "two.py").write_text("")
    seen.add(digest_of(tmp_path))
    (tmp_path / "two.py").rename(tmp_path / "three.py")
    seen.add(digest_of(tmp_path))
    assert len(seen) == 4


def test_it_is_the_version_of_the_package() -> None:
    package = Path(__file__).parents[2] / "kernels" / "outrider_kernels"
    assert kernels_version() == digest_of(package) and len(kernels_version()) == 8
