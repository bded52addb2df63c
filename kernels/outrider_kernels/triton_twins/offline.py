"""Compiles kernels to GPU machine code on a machine without a GPU, and reads what they take.

`python -m outrider_kernels.triton_twins.offline` compiles every variant of the registry for every architecture and
prints one JSON object a line. Run it where TRITON_INTERPRET is not set: interpreted kernels cannot be compiled.
"""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from outrider_kernels.triton_twins.registry import Variant, variants

ARCHITECTURES = (80, 90, 100)
"""Compute capabilities: A100, H100 and B200."""
_DIVISOR = 16
"""Bytes that pointers are aligned to; what triton looks for in scalars too."""


@dataclass(frozen=True, slots=True)
class Footprint:
    """What one variant takes on one architecture."""

    variant: str
    kernel: str
    architecture: int
    num_warps: int
    hot: bool
    registers: int
    """Of one thread."""
    spill_bytes: int
    """Stored to and loaded from local memory, per thread."""
    shared_bytes: int
    """Of one program."""
    code_bytes: int
    """Size of the cubin."""


def compile_offline(variant: Variant, architecture: int) -> Footprint:
    """Compile one variant to a cubin.

    Args:
        variant: of the registry.
        architecture: compute capability, 80 for 8.0.

    Raises:
        RuntimeError: the assembler's report has another form than expected.
    """
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    source = ASTSource(
        variant.kernel,
        dict(variant.signature),
        dict(variant.constants),
        {place: [["tt.divisibility", _DIVISOR]] for place in _divisible_places(variant)},
    )
    options = {"num_warps": variant.num_warps, **variant.options}
    compiled = triton.compile(source, target=GPUTarget("cuda", architecture, 32), options=options)
    report = _assembler_report(compiled.asm["ptx"], architecture, compiled.metadata.enable_fp_fusion)
    return Footprint(
        variant=variant.name,
        kernel=variant.kernel.__name__,
        architecture=architecture,
        num_warps=variant.num_warps,
        hot=variant.hot,
        registers=_number_before(r"registers", report, 1),
        spill_bytes=_number_before(r"bytes spill stores", report, 1) + _number_before(r"bytes spill loads", report, 1),
        shared_bytes=compiled.metadata.shared,
        code_bytes=len(compiled.asm["cubin"]),
    )


def compile_all(chosen: Iterable[Variant], architectures: Sequence[int] = ARCHITECTURES) -> list[Footprint]:
    """Compile variants for every architecture, in this order."""
    return [compile_offline(variant, architecture) for variant in chosen for architecture in architectures]


def _divisible_places(variant: Variant) -> list[tuple[int, ...]]:
    """Places in the signature, those of tuples with their field."""
    places: list[tuple[int, ...]] = []
    for place, (name, kind) in enumerate(variant.signature.items()):
        fields = {(place,): (name, kind)} if isinstance(kind, str) else _fields(place, name, kind)
        for at, (full_name, field) in fields.items():
            if full_name in variant.divisible or (field.startswith("*") and full_name not in variant.unaligned):
                places.append(at)
    return places


def _fields(place: int, name: str, kinds: tuple[str, ...]) -> dict[tuple[int, ...], tuple[str, str]]:
    names = kinds._fields if hasattr(kinds, "_fields") else range(len(kinds))
    return {(place, at): (f"{name}.{field}", kind) for at, (field, kind) in enumerate(zip(names, kinds, strict=True))}


def _assembler_report(ptx: str, architecture: int, fused: bool) -> str:
    """What ptxas says about a kernel, assembled with the flags that triton uses."""
    from triton.backends.nvidia.compiler import get_ptxas, sm_arch_from_capability

    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "kernel.ptx"
        source.write_text(ptx, encoding="utf-8")
        command = [get_ptxas(architecture).path, "-v", "--regAllocOptLevel=2"]
        command += [] if fused else ["--fmad=false"]
        command += [f"--gpu-name={sm_arch_from_capability(architecture)}", str(source), "-o", str(source) + ".o"]
        return subprocess.run(command, check=True, capture_output=True, text=True).stderr


def _number_before(words: str, report: str, expected: int) -> int:
    numbers = re.findall(rf"(\d+) {words}", report)
    if len(numbers) != expected:
        raise RuntimeError(f"expected {expected} count of {words!r} in the assembler's report, given: {report}")
    return int(numbers[0])


def main() -> None:
    """Print the footprints of all variants."""
    for variant in variants():
        for footprint in compile_all([variant]):
            record: dict[str, Any] = asdict(footprint)
            print(json.dumps(record), flush=True)


if __name__ == "__main__":
    main()
