"""What this processor has, as LLVM knows it: which kernels run on it, and how many sums they keep in registers."""

from __future__ import annotations

from llvmlite import binding

FEATURES = binding.get_host_cpu_features()
"""Names of instruction sets, and whether they are here."""
HAS_LONG_REGISTERS = bool(FEATURES.get("avx512f"))
"""32 vector registers of 16 float32; else there are taken to be 16 of eight. No bit depends on it."""
