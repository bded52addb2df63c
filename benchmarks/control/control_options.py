"""What all live benchmarks of the depth ask of the command line, and how they keep what they found."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import yaml

_ROOT = Path(__file__).resolve().parents[2]


def control_parser(description: str | None, ports: int, max_tokens: int = 96) -> argparse.ArgumentParser:
    """A parser with the options that all have.

    Args:
        description: the script's docstring.
        ports: that its servers take.
        max_tokens: of an answer, unless asked for otherwise.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--config", type=Path, default=_ROOT / "cluster.yaml", help="cluster file of one application (default: ours)")
    add("--max-tokens", type=int, default=max_tokens, help="tokens of an answer at most (default: %(default)s)")
    add("--seed", type=int, default=1000, help="prompt i is asked with seed + i (default: %(default)s)")
    add("--first-port", type=int, default=8300, help=f"servers take {ports} ports from here (default: %(default)s)")
    add("--prompts", type=Path, default=_ROOT / "benchmarks/serving/prompts.json", help="JSON list of {kind, text}")
    add("--out", type=Path, help="write all figures to this JSON file")
    return parser


def cluster_of(options: argparse.Namespace) -> dict[str, Any]:
    """The content of the cluster file."""
    cluster: dict[str, Any] = yaml.safe_load(options.config.read_text(encoding="utf-8"))
    return cluster


def keep(result: object, options: argparse.Namespace) -> None:
    """Write the figures, if that was asked for."""
    if options.out is not None:
        options.out.write_text(json.dumps(result, indent=1), encoding="utf-8")
