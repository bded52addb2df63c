"""Triton's language replaced by the interpreter's once a test.

The interpreter replaces it anew whenever a function of a kernel calls another one, which is a third of the time that a
decoder's kernels take.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import FunctionType

import pytest
import triton.language as tl
from triton.runtime import interpreter


@contextmanager
def language_replaced_once() -> Iterator[None]:
    """Within it, launches and calls of interpreted kernels find the language replaced, and replace nothing."""
    scope = interpreter._patch_lang(FunctionType(_nothing.__code__, {"tl": tl, "core": tl.core}))
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(interpreter, "_patch_lang", lambda _: interpreter._LangPatchScope())
            yield
    finally:
        scope.restore()


def _nothing() -> None:
    """Stands for a kernel that sees the language by both its names."""
