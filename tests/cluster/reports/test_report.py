"""Reports: one page with everything in it, the same as data, and a picture for each plot."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from outrider_cluster.reports.figures import Panel, Point, bars_by_position, clouds, curves, depth_over_load, over_time
from outrider_cluster.reports.report import Plot, Report, ReportTable, prepare_folder, write_report
from outrider_runtime.errors import InvalidConfig

FIGURES = {
    "curves": curves({"depth 0": [Point(1, 2, "1"), Point(2, 3, "2")]}, "ms", "tokens/s"),
    "no curves": curves({}, "ms", "tokens/s"),
    "bars": bars_by_position({"ngram": [0.5, 0.4], "suffix": [0.9]}),
    "clouds": clouds({"depth 4": [Point(30, 100), Point(31, 90)]}, "ms", "tokens/s"),
    "depths": depth_over_load([Point(1, 4), Point(64, 0)], "load"),
    "time": over_time([0, 1, 2], [Panel("a", {"x": [1, 2, 3], "y": [3, 2, 1]}), Panel("b", {"x": [0, 0, 0]})]),
}


def report(title: str = "Title") -> Report:
    plots = [Plot(name.replace(" ", "_"), f"caption of {name}", figure) for name, figure in FIGURES.items()]
    table = ReportTable("Table", ("key", "value"), [("a <b>", "1")])
    return Report(title, "subtitle", (table,), plots, {"a": 1}, {"snippet.yaml": "key: 'value & more'\n"})


def test_the_page_holds_every_plot_and_needs_no_other_file(tmp_path: Path) -> None:
    page, *_ = write_report(report(), tmp_path).files
    text = page.read_text()
    assert text.count("data:image/png;base64,") == len(FIGURES)
    assert re.findall(r'(?:src|href)="(?!data:)', text) == []


def test_text_is_shown_as_text(tmp_path: Path) -> None:
    page, *_ = write_report(report("<script>"), tmp_path).files
    text = page.read_text()
    assert "<script>" not in text
    assert "a &lt;b&gt;" in text
    assert "value &amp; more" in text


def test_plots_texts_and_data_lie_beside_the_page(tmp_path: Path) -> None:
    written = write_report(report(), tmp_path).files
    assert {file.name for file in tmp_path.iterdir()} == {file.name for file in written}
    assert json.loads((tmp_path / "report.json").read_text()) == {"a": 1}
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "snippet.yaml").read_text() == "key: 'value & more'\n"


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InvalidConfig, match="--out"):
        prepare_folder(tmp_path / "file")
