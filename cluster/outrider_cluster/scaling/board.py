"""Where the policies of one application meet inside Serve's controller process.

Serve gives each policy the reports of its own deployment only. What our controller decided comes in with the reports of
*its* deployment: its policy posts them here, all others read them. Nobody waits for anything, and nothing is called.
"""

from __future__ import annotations

from dataclasses import dataclass

MAX_AGE_S = 30.0
"""What was posted is no longer believed after this time without a newer report."""
PREFIX = "desired:"
"""Before the names of deployments in the reports."""


@dataclass(frozen=True, slots=True)
class _Note:
    replicas: int
    reported_s: float
    """By the reporter's clock: tells a new report from the same one seen again."""
    heard_s: float
    """By our own clock."""


_NOTES: dict[tuple[str, str], _Note] = {}
"""By application and deployment. Serve makes a policy object for each deployment, and lets them share nothing else."""


def post(application: str, deployment: str, replicas: int, reported_s: float, now_s: float) -> None:
    """Note what was decided for a deployment; a report that was seen before does not make it any fresher."""
    known = _NOTES.get((application, deployment))
    if known is None or reported_s != known.reported_s:
        _NOTES[application, deployment] = _Note(replicas, reported_s, now_s)


def read(application: str, deployment: str, now_s: float) -> int | None:
    """Replicas that a deployment should have; None when nobody has said so of late."""
    note = _NOTES.get((application, deployment))
    return None if note is None or now_s - note.heard_s > MAX_AGE_S else note.replicas
