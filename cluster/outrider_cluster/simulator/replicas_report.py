"""Numbers of replicas in the report of a simulation: when they changed, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from outrider_cluster.reports.figures import Panel, over_time
from outrider_cluster.reports.report import ReportTable
from outrider_cluster.simulator.replication import Look

_MOST_ROWS = 60


def replicas_document(looks: Mapping[str, Sequence[Look]]) -> dict[str, list[dict[str, object]]]:
    """By deployment, every look that found something else than the one before: numbers, reason, and its figures."""
    return {name: [_entry(look) for look in _changes(of_one)] for name, of_one in looks.items()}


def replicas_plot(looks: Mapping[str, Sequence[Look]]) -> Figure:
    """A panel for each deployment. All have looks at the same moments."""
    times_s = [look.at_s for look in next(iter(looks.values()))]
    panels = [
        Panel(name, {"serving": [look.present for look in found], "desired": [look.decision.desired for look in found]})
        for name, found in looks.items()
    ]
    return over_time(times_s, panels)


def replicas_table(looks: Mapping[str, Sequence[Look]]) -> ReportTable:
    """Every change of what there should be, the first ones only where there are many."""
    rows = [
        (look.at_s, (f"{look.at_s:.0f}", name, f"{before} to {look.decision.desired}", look.decision.reason))
        for name, found in looks.items()
        for before, look in _steps(found)
    ]
    rows.sort(key=lambda row: row[0])
    title = "Replicas" if len(rows) <= _MOST_ROWS else f"Replicas: the first {_MOST_ROWS} of {len(rows)} changes"
    return ReportTable(title, ("at s", "deployment", "replicas", "reason"), [cells for _, cells in rows[:_MOST_ROWS]])


def _steps(looks: Sequence[Look]) -> list[tuple[int, Look]]:
    """Looks that changed what there should be, with the number before."""
    before = [look.present for look in looks[:1]] + [look.decision.desired for look in looks]
    return [(was, look) for was, look in zip(before, looks, strict=False) if look.decision.desired != was]


def _changes(looks: Sequence[Look]) -> list[Look]:
    def facts(look: Look) -> tuple[int, int, str]:
        return look.present, look.decision.desired, look.decision.reason

    return [
        look for last, look in zip([None, *looks], looks, strict=False) if last is None or facts(last) != facts(look)
    ]


def _entry(look: Look) -> dict[str, object]:
    decision = look.decision
    return {
        "at_s": look.at_s,
        "serving": look.present,
        "desired": decision.desired,
        "wanted": decision.wanted,
        "reason": decision.reason,
        "figures": {figure.name: figure.value for figure in decision.figures},
    }
