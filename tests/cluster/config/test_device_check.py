"""A file that asks for a GPU is remarked on where there is none, for other nodes may have one."""

from __future__ import annotations

from pathlib import Path

import pytest

from outrider_cluster.config import device_check
from outrider_cluster.config.validate import validate_file

FILE = """
http_options: {port: 8011}
applications:
  - name: outrider
    import_path: outrider_cluster.app:build
    args:
      target: {device: DEVICE}
"""


@pytest.mark.parametrize(
    ("device", "has_gpu", "is_found"), [("cuda", False, True), ("cuda", True, False), ("cpu", False, False)]
)
def test_a_gpu_that_is_not_here_is_named(
    device: str, has_gpu: bool, is_found: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device_check, "may_have_gpu", lambda: has_gpu)
    path = tmp_path / "cluster.yaml"
    path.write_text(FILE.replace("DEVICE", device))
    validated = validate_file(path)
    assert validated.findings == ()
    found = validated.remarks
    assert [(finding.path[-2:], finding.line, finding.allowed) for finding in found] == (
        [(("target", "device"), 7, "cpu")] if is_found else []
    )
    assert validate_file(path, served_here=False).remarks == ()


def test_another_device_is_refused_with_what_there_is(tmp_path: Path) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text(FILE.replace("DEVICE", "tpu"))
    [finding] = validate_file(path).findings
    assert finding.path[-1] == "device" and "cuda" in str(finding.allowed)
