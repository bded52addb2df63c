"""A report: facts, tables, figures, and the whole of it as plain data; and how it is written to a folder."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from matplotlib.figure import Figure

from outrider_runtime.errors import InvalidConfig

_DPI = 120


@dataclass(frozen=True, slots=True)
class ReportTable:
    """A table as people read it; all cells are text."""

    title: str
    columns: tuple[str, ...]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class Plot:
    """A figure; `name` is its file's name without ending, `caption` says what it shows."""

    name: str
    caption: str
    figure: Figure


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that is written."""

    title: str
    subtitle: str
    tables: Sequence[ReportTable]
    plots: Sequence[Plot]
    document: Mapping[str, object]
    """All of it for programs."""
    texts: Mapping[str, str]
    """Files of text beside it, such as config snippets, by file name; they stand on the page too."""


@dataclass(frozen=True, slots=True)
class Written:
    """A report that was written, and its files, the page first."""

    report: Report
    files: tuple[Path, ...]


def prepare_folder(folder: Path) -> Path:
    """The folder, made if need be.

    Raises:
        InvalidConfig: it cannot be made or written to.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".writable"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise InvalidConfig(
            f"{folder}: cannot write the report there: {error}; name another folder with --out"
        ) from error
    return folder


def write_report(report: Report, folder: Path) -> Written:
    """Write report.json, report.html, a PNG for each plot, and the texts."""
    images = {plot.name: _png(plot.figure) for plot in report.plots}
    page, document = folder / "report.html", folder / "report.json"
    page.write_text(_page(report, images), encoding="utf-8")
    document.write_text(json.dumps(report.document, indent=1) + "\n", encoding="utf-8")
    written = [page, document]
    for name, image in images.items():
        written.append(folder / f"{name}.png")
        written[-1].write_bytes(image)
    for name, text in report.texts.items():
        written.append(folder / name)
        written[-1].write_text(text, encoding="utf-8")
    return Written(report, tuple(written))


def _png(figure: Figure) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=_DPI)
    return buffer.getvalue()


def _page(report: Report, images: Mapping[str, bytes]) -> str:
    loader = PackageLoader("outrider_cluster.reports", "templates")
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    encoded = {name: base64.b64encode(image).decode("ascii") for name, image in images.items()}
    return environment.get_template("report.html.j2").render(report=report, images=encoded)
