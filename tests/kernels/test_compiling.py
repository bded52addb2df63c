"""Machine code on disk never outlives its sources."""

from __future__ import annotations

import os
from pathlib import Path

from outrider_kernels.compiling import drop_stale_code


def test_code_older_than_any_source_is_dropped_and_newer_code_stays(tmp_path: Path) -> None:
    cache = tmp_path / "__pycache__"
    cache.mkdir()
    for path, age in ((tmp_path / "a.py", 10), (tmp_path / "b.py", 20), (cache / "a.nbi", 15), (cache / "b.nbi", 25)):
        path.touch()
        os.utime(path, (age, age))
    drop_stale_code(tmp_path)
    assert [path.name for path in cache.iterdir()] == ["b.nbi"]
