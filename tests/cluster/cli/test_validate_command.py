"""`outrider validate`: exit codes, one line a fault, JSON."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml
from outrider_doubles.repository import ROOT
from typer.testing import CliRunner

from outrider_cluster.cli.checked_file import load_checked
from outrider_cluster.cli.main import app

GOOD = ROOT / "cluster.yaml"


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    text = GOOD.read_text(encoding="utf-8").replace("max_num_seqs: 32", "max_num_seq: 32")
    file = tmp_path / "bad.yaml"
    file.write_text(text, encoding="utf-8")
    return file


def test_a_good_file_passes() -> None:
    result = CliRunner().invoke(app, ["validate", str(GOOD)])
    assert (result.exit_code, result.stdout) == (0, f"{GOOD}: no faults\n")


def test_the_command_knows_its_version() -> None:
    result = CliRunner().invoke(app, ["--version"])
    assert (result.exit_code, result.stdout) == (0, f"{version('outrider')}\n")


def test_one_fault_is_counted_in_the_singular(bad: Path) -> None:
    result = CliRunner().invoke(app, ["validate", str(bad)])
    assert result.stdout.splitlines()[-1] == f"{bad}: 1 fault"


def test_a_size_that_is_none_is_quoted_once(tmp_path: Path) -> None:
    file = tmp_path / "size.yaml"
    file.write_text(GOOD.read_text(encoding="utf-8").replace("1GiB", "1Gig"), encoding="utf-8")
    result = CliRunner().invoke(app, ["validate", str(file)])
    assert result.stdout.splitlines()[0].count("1Gig") == 1


def test_a_fault_is_one_line_with_file_line_path_value_and_suggestion(bad: Path) -> None:
    result = CliRunner().invoke(app, ["validate", str(bad)])
    line = next(i for i, text in enumerate(bad.read_text().splitlines(), 1) if "max_num_seq:" in text)
    first = result.stdout.splitlines()[0]
    assert result.exit_code == 1
    assert first.startswith(f"{bad}:{line}: applications[0].args.target.max_num_seq: unknown key, got 32, allowed: ")
    assert first.endswith("Did you mean max_num_seqs?")


def test_json_holds_every_part_of_a_fault(bad: Path) -> None:
    result = CliRunner().invoke(app, ["validate", str(bad), "--json"])
    document = json.loads(result.stdout)
    (finding,) = document["findings"]
    assert (result.exit_code, document["valid"], document["file"]) == (1, False, str(bad))
    assert finding["path"] == "applications[0].args.target.max_num_seq"
    assert finding["value"] == "32"
    assert finding["suggestion"] == "Did you mean max_num_seqs?"
    assert finding["line"] > 1


def test_json_of_a_good_file_is_valid_and_without_findings() -> None:
    result = CliRunner().invoke(app, ["validate", str(GOOD), "--json"])
    assert result.exit_code == 0
    assert json.loads(result.stdout) == {"file": str(GOOD), "valid": True, "findings": [], "remarks": []}


@pytest.fixture
def remarkable(tmp_path: Path) -> Path:
    document = yaml.safe_load(GOOD.read_text(encoding="utf-8"))
    pool = {"name": "mine", "method": "custom_class", "model": "no_such_package.Class"}
    document["applications"][0]["args"]["draft_pools"] = [pool]
    file = tmp_path / "remarkable.yaml"
    file.write_text(yaml.safe_dump(document), encoding="utf-8")
    return file


def test_a_remark_is_a_line_of_its_own_and_fails_nothing(remarkable: Path) -> None:
    result = CliRunner().invoke(app, ["validate", str(remarkable)])
    remark, last = result.stdout.splitlines()
    assert (result.exit_code, last) == (0, f"{remarkable}: no faults, 1 remark")
    assert ": remark: applications[0].args.draft_pools[0].model: no_such_package is not importable here" in remark
    assert remark.startswith(f"{remarkable}:") and "runtime_env" in remark


def test_json_holds_remarks_beside_findings(remarkable: Path) -> None:
    result = CliRunner().invoke(app, ["validate", str(remarkable), "--json"])
    document = json.loads(result.stdout)
    (remark,) = document["remarks"]
    assert (result.exit_code, document["valid"], document["findings"]) == (0, True, [])
    assert remark["path"] == "applications[0].args.draft_pools[0].model" and remark["line"] > 1
    assert remark.keys() == {"path", "line", "problem", "value", "allowed", "suggestion"}


def test_what_is_served_tells_its_remarks_and_goes_on(remarkable: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert load_checked(remarkable, served_here=True).findings == ()
    assert "remark: applications[0].args.draft_pools[0].model" in " ".join(capsys.readouterr().err.split())


def test_broken_yaml_is_one_line_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "broken.yaml"
    file.write_text("a: [1\nb: 2\n")
    result = CliRunner().invoke(app, ["validate", str(file)])
    assert result.exit_code == 1
    assert result.stderr.startswith(f"outrider: {file}:2: not YAML: ")
    assert result.stderr.count("\n") == 1
    assert json.loads(CliRunner().invoke(app, ["validate", str(file), "--json"]).stdout)["valid"] is False


def test_a_missing_argument_is_wrong_usage() -> None:
    assert CliRunner().invoke(app, ["validate"]).exit_code == 2


def test_validating_loads_neither_ray_nor_torch() -> None:
    heavy = "{'ray', 'torch', 'transformers', 'numba', 'grpc', 'starlette'}"
    code = f"""
import sys
from outrider_cluster.cli.main import app
try:
    app(["validate", {str(GOOD)!r}])
except SystemExit as end:
    assert not end.code
print(*sorted({heavy} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [f"{GOOD}: no faults", ""]
