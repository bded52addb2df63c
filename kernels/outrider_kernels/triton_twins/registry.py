"""Every Triton kernel in the forms in which it is launched, so that all can be compiled without a GPU.

How to register: in the module of the kernel, which is named `<kernel>_triton.py`, end with

    VARIANTS = (
        Variant(
            name="scan bfloat16",
            kernel=scan,
            signature={"logits": "*bf16", "count": "i32", "BLOCK": "constexpr"},
            constants={"BLOCK": 2048},
            num_warps=4,
            hot=True,
        ),
    )

and add the module's name to `KERNEL_MODULES`. The signature names every argument of the kernel in order: `*bf16`,
`*fp16`, `*fp32`, `*fp64`, `*i32`, `*i64` and `*u64` are pointers, the same without `*` scalars, `constexpr` a constant
that `constants` gives; a named tuple holds those of its fields. Pointers are compiled as aligned to 16 bytes, which is
what torch allocates; name those that are not in `unaligned`, and scalars that are multiples of 16 in `divisible`, a
field of a tuple as `table.stride`. `options` are the compiler options that the launcher passes, by default
`LAUNCH_OPTIONS`.
Annotate what kernels take with `tl.tensor`; tests run them interpreted (tests/conftest.py sees to it).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from types import MappingProxyType
from typing import Any

KERNEL_MODULES = (
    "noise_triton",
    "draws_triton",
    "ratio_triton",
    "synthetic_triton",
    "paged_attention_triton",
    "rotary_triton",
    "linear_triton",
    "rms_norm_triton",
    "gated_unit_triton",
    "ngram_lookup_triton",
    "verification_variants",
)
"""Modules of this package that hold kernels; each has `VARIANTS`."""
LAUNCH_OPTIONS: Mapping[str, Any] = MappingProxyType({"enable_fp_fusion": False})
"""Options of kernels that decide something: multiply and add round one by one, as they do in the reference."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One form in which a kernel is launched."""

    name: str
    """Unique among all kernels; names kernel, dtype and what else sets the form apart."""
    kernel: Any
    """What `triton.jit` gave."""
    signature: Mapping[str, str | tuple[str, ...]]
    constants: Mapping[str, int | bool | float | str]
    num_warps: int = 4
    hot: bool = False
    """Whether it takes part in every step: then it must not spill registers."""
    options: Mapping[str, Any] = field(default_factory=lambda: LAUNCH_OPTIONS)
    unaligned: frozenset[str] = frozenset()
    divisible: frozenset[str] = frozenset()


def variants() -> tuple[Variant, ...]:
    """All variants. Imports triton.

    Raises:
        ValueError: two variants have the same name.
    """
    found: list[Variant] = []
    for name in KERNEL_MODULES:
        found += import_module(f"{__package__}.{name}").VARIANTS
    names = [variant.name for variant in found]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ValueError(f"expected variants with names of their own, given twice: {sorted(twice)}")
    return tuple(found)
