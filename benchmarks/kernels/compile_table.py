"""Compiles every Triton kernel for the GPUs that we name and writes what each takes to benchmarks/kernels/README.md.

python benchmarks/kernels/compile_table.py

Needs no GPU. The table stands between two marks in the README; the rest of the page stays as it is.
"""

from __future__ import annotations

import argparse
import os
import sys
from importlib.metadata import version
from pathlib import Path

from outrider_kernels.triton_twins.offline import ARCHITECTURES, Footprint, compile_all
from outrider_kernels.triton_twins.registry import variants

PAGE = Path(__file__).parent / "README.md"
BEGIN, END = "<!-- table: begin -->", "<!-- table: end -->"


def main() -> None:
    parser = argparse.ArgumentParser(description="Writes the table of registers, spills and shared memory.")
    parser.parse_args()
    if os.environ.get("TRITON_INTERPRET") == "1":
        sys.exit("TRITON_INTERPRET is set: kernels that are interpreted cannot be compiled")
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    footprints = compile_all(variants())
    PAGE.write_text(f"{before}{BEGIN}\n{table(footprints)}\n{END}{after}", encoding="utf-8")
    print(f"{len(footprints)} cubins; written to {PAGE}")


def table(footprints: list[Footprint]) -> str:
    """Markdown: one line a variant, one figure an architecture."""
    names = " / ".join(f"sm_{architecture}" for architecture in ARCHITECTURES)
    lines = [
        f"triton {version('triton')}, figures for {names}.",
        "",
        "| kernel | warps | every step | registers a thread | spilled bytes | shared bytes | cubin KiB |",
        "|---|---|---|---|---|---|---|",
    ]
    by_variant: dict[str, list[Footprint]] = {}
    for footprint in footprints:
        by_variant.setdefault(footprint.variant, []).append(footprint)
    return "\n".join(lines + [_line(name, group) for name, group in by_variant.items()])


def _line(name: str, group: list[Footprint]) -> str:
    columns = (
        [footprint.registers for footprint in group],
        [footprint.spill_bytes for footprint in group],
        [footprint.shared_bytes for footprint in group],
        [round(footprint.code_bytes / 1024) for footprint in group],
    )
    figures = " | ".join(" / ".join(map(str, column)) for column in columns)
    return f"| {name} | {group[0].num_warps} | {'yes' if group[0].hot else ''} | {figures} |"


if __name__ == "__main__":
    main()
