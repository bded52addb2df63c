"""Reads scenario files, with every fault named as in cluster files: place, value, what is allowed, what was meant."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from outrider_cluster.config.finding import Finding
from outrider_cluster.config.settings_check import check_settings
from outrider_cluster.config.yaml_source import read_yaml
from outrider_cluster.simulator.scenario import Scenario
from outrider_runtime.errors import InvalidConfig


class InvalidScenario(InvalidConfig):
    """A scenario file has faults.

    Args:
        file: its path.
        findings: all of them.
    """

    def __init__(self, file: Path, findings: tuple[Finding, ...]) -> None:
        self.file = file
        self.findings = findings
        count = len(findings)
        super().__init__(f"{file} has {count} fault{'s' if count > 1 else ''}; nothing was simulated")


def read_scenario(file: Path) -> Scenario:
    """The scenario in a YAML file.

    Raises:
        InvalidConfig: it cannot be read, or is no YAML.
        InvalidScenario: it has faults.
    """
    source = read_yaml(file)
    findings = [*source.findings, *check_settings(Scenario, source.data)]
    if findings:
        placed = [replace(finding, line=finding.line or source.line_of(finding.path)) for finding in findings]
        raise InvalidScenario(file, tuple(sorted(placed, key=lambda finding: finding.line or 0)))
    return Scenario.model_validate(source.data)
