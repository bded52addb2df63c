"""The result of `outrider validate`: with `--json`, and in short."""

from __future__ import annotations

from pathlib import Path
from typing import TypedDict

from outrider_cluster.config.finding import Finding, format_path
from outrider_cluster.config.validate import Validated, validate_file
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
    """One file. Remarks have the form of findings, and make it no less valid."""

    file: str
    valid: bool
    findings: list[FindingReport]
    remarks: list[FindingReport]


def report(file: Path) -> ValidationReport:
    """Validate `file`. A file that cannot be read, or is no YAML, is a finding too."""
    findings: tuple[Finding, ...]
    remarks: tuple[Finding, ...] = ()
    try:
        validated = validate_file(file)
        findings, remarks = validated.findings, validated.remarks
    except InvalidConfig as error:
        findings = (Finding((), str(error)),)
    return ValidationReport(
        file=str(file), valid=not findings, findings=[*map(_report, findings)], remarks=[*map(_report, remarks)]
    )


def summary(validated: Validated) -> str:
    """How many faults there are, and remarks if any: ``no faults, 1 remark``."""
    faults, remarks = len(validated.findings), len(validated.remarks)
    told = _count(faults, "fault") if faults else "no faults"
    return f"{told}, {_count(remarks, 'remark')}" if remarks else told


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' if number > 1 else ''}"


def _report(finding: Finding) -> FindingReport:
    return FindingReport(
        path=format_path(finding.path),
        line=finding.line,
        problem=finding.problem,
        value=finding.value,
        allowed=finding.allowed,
        suggestion=finding.suggestion,
    )
