"""A config file that has passed every check; no command deploys anything else."""

from __future__ import annotations

from pathlib import Path

from outrider_cluster.cli.failure import CommandFailed, errors
from outrider_cluster.config.finding import Finding
from outrider_cluster.config.validate import Validated, validate_file


def load_checked(file: Path, served_here: bool) -> Validated:
    """Read and judge a file; all faults and remarks are printed, one a line.

    Args:
        file: a file for `ray serve deploy`.
        served_here: as in `validate_file`. What a cluster's file names is on its own nodes.

    Raises:
        InvalidConfig: it cannot be read, or is no YAML.
        CommandFailed: it has faults.
    """
    validated = validate_file(file, served_here)
    for finding in validated.findings:
        errors.print(finding_line(file, finding))
    for remark in validated.remarks:
        errors.print(remark_line(file, remark))
    if validated.findings:
        count = len(validated.findings)
        raise CommandFailed(f"{file} has {count} fault{'s' if count > 1 else ''}; nothing was started")
    return validated


def finding_line(file: Path, finding: Finding) -> str:
    """A finding as editors and people know it: ``file:line: text``."""
    return f"{_place(file, finding)}: {finding}"


def remark_line(file: Path, remark: Finding) -> str:
    """The same for what fails nothing: ``file:line: remark: text``."""
    return f"{_place(file, remark)}: remark: {remark}"


def _place(file: Path, finding: Finding) -> str:
    return str(file) if finding.line is None else f"{file}:{finding.line}"
