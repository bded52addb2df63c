"""One decorator for everything that numba compiles, so that all kernels share their floating-point rules."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TypeVar, cast

from numba import config, njit

if config.THREADING_LAYER == "default":
    # Kernels of several threads may run at once, also in one that keeps Python's lock: numba gives it away while its
    # threads work. The layer that it falls back to without the system's OpenMP ends the process then; it still serves
    # processes in which one thread runs kernels, as in targets.
    with suppress(ImportError):
        import_module("numba.np.ufunc.omppool")
        config.THREADING_LAYER = "omp"

_Function = TypeVar("_Function", bound=Callable[..., object])

FUSED = frozenset({"contract", "nsz"})
"""Multiply-add may fuse and -0 may become 0. Sums keep their order; NaN and infinity keep their meaning."""


def compiled(
    *, parallel: bool = False, fastmath: frozenset[str] = frozenset(), lets_python_run: bool = False
) -> Callable[[_Function], _Function]:
    """Compile a function on its first call and keep the machine code on disk.

    Args:
        parallel: let `prange` loops use numba's threads.
        fastmath: LLVM's flags; none means that every operation rounds as IEEE 754 says, in source order.
        lets_python_run: give Python's lock to other threads meanwhile; worth it for long calls only.
    """
    options = {
        "cache": True,
        "error_model": "numpy",
        "parallel": parallel,
        "fastmath": set(fastmath),
        "nogil": lets_python_run,
    }
    return cast(Callable[[_Function], _Function], njit(**options))


def drop_stale_code(folder: Path) -> None:
    """Remove machine code on disk that is older than any source of `folder`.

    numba itself looks at the file of a function only, and would keep callees of other files as they once were.
    """
    newest = max(source.stat().st_mtime_ns for source in folder.glob("*.py"))
    for index in (folder / "__pycache__").glob("*.nbi"):
        # Another process may drop it first; in a folder that is read-only numba does not look for it.
        with suppress(FileNotFoundError, PermissionError):
            if index.stat().st_mtime_ns < newest:
                index.unlink()


drop_stale_code(Path(__file__).parent)
