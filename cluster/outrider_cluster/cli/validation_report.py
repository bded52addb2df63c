"""The result of `outrider validate --json`."""

from __future__ import annotations

from pathlib import Path
from typing import TypedDict

from outrider_cluster.config.finding import Finding, format_path
from outrider_cluster.config.validate import validate_file
from outrider_runtime.errors import InvalidConfig


class FindingReport(TypedDict):
    """One fault; absent parts are null."""

    path: str
    line: int | None
    problem: str
    value: str | None
    allowed: str | None
    suggestion: str | None


class ValidationReport(TypedDict):
    """One file."""

    file: str
    valid: bool
    findings: list[FindingReport]


def report(file: Path) -> ValidationReport:
    """Validate `file`. A file that cannot be read, or is no YAML, is a finding too."""
    try:
        findings = [*validate_file(file).findings]
    except InvalidConfig as error:
        findings = [Finding((), str(error))]
    return ValidationReport(file=str(file), valid=not findings, findings=[_report(finding) for finding in findings])


def _report(finding: Finding) -> FindingReport:
    return FindingReport(
        path=format_path(finding.path),
        line=finding.line,
        problem=finding.problem,
        value=finding.value,
        allowed=finding.allowed,
        suggestion=finding.suggestion,
    )
