"""Twins of the kernels in Triton, for logits and caches that live on a GPU.

Modules named `*_triton` import triton at the top: import them inside the function that needs them, because triton is
not on every machine. All other modules of this package, and the rest of `outrider_kernels`, import without it.
"""
