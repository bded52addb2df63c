"""Figures of reports. Plain functions from numbers to matplotlib figures; no window, no global state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

_LABEL_ROOM = 0.12
"""Of the axes' width and height, for labels beside the outermost points."""


class Point(NamedTuple):
    """One point of a curve; `label` is written beside it."""

    x: float
    y: float
    label: str = ""


class Panel(NamedTuple):
    """One row of a figure over time."""

    title: str
    curves: Mapping[str, Sequence[float]]


def curves(lines: Mapping[str, Sequence[Point]], x_label: str, y_label: str) -> Figure:
    """Lines with marked points, one for each name."""
    figure, axes = _single(x_label, y_label)
    axes.margins(_LABEL_ROOM)
    for name, points in lines.items():
        axes.plot([p.x for p in points], [p.y for p in points], marker="o", markersize=4, label=name)
        for point in points:
            axes.annotate(point.label, (point.x, point.y), textcoords="offset points", xytext=(4, 4), fontsize=7)
    if lines:
        axes.legend(fontsize=8)
    axes.set_ylim(bottom=0)
    return figure


def clouds(groups: Mapping[str, Sequence[Point]], x_label: str, y_label: str) -> Figure:
    """Points without lines between them, of one colour for each name."""
    figure, axes = _single(x_label, y_label)
    for name, points in groups.items():
        axes.plot([p.x for p in points], [p.y for p in points], "o", markersize=4, alpha=0.6, label=name)
    if groups:
        axes.legend(fontsize=8)
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    return figure


def bars_by_position(shares: Mapping[str, Sequence[float]]) -> Figure:
    """Acceptance at each position of a proposal, a group of bars for each pool."""
    figure, axes = _single("position in the proposal", "accepted, of those tried")
    width = 0.8 / max(1, len(shares))
    for index, (pool, values) in enumerate(shares.items()):
        places = [position + 1 + (index - (len(shares) - 1) / 2) * width for position in range(len(values))]
        axes.bar(places, values, width, label=pool)
    if shares:
        axes.legend(fontsize=8)
    axes.set_ylim(0, 1)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    return figure


def depth_over_load(depths: Sequence[Point], x_label: str) -> Figure:
    """The chosen depth over load; labels say why."""
    figure, axes = _single(x_label, "depth")
    axes.margins(_LABEL_ROOM)
    axes.step([p.x for p in depths], [p.y for p in depths], where="mid", marker="o", markersize=4)
    for point in depths:
        axes.annotate(point.label, (point.x, point.y), textcoords="offset points", xytext=(4, 4), fontsize=7)
    axes.set_ylim(bottom=-0.2)
    if depths and max(p.x for p in depths) > 8 * min(p.x for p in depths):
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    return figure


def over_time(times_s: Sequence[float], panels: Sequence[Panel]) -> Figure:
    """Panels above each other that share the axis of time."""
    figure = Figure(figsize=(8, 1.9 * len(panels) + 0.6), layout="constrained")
    grid = figure.subplots(len(panels), 1, sharex=True, squeeze=False)
    for axes, panel in zip(grid[:, 0], panels, strict=True):
        for name, values in panel.curves.items():
            axes.plot(times_s, values, linewidth=1.2, label=name)
        axes.set_title(panel.title, fontsize=9, loc="left")
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.3)
        if len(panel.curves) > 1:
            axes.legend(fontsize=7)
    grid[-1, 0].set_xlabel("seconds")
    return figure


def _single(x_label: str, y_label: str) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.subplots()
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    axes.grid(alpha=0.3)
    return figure, axes
