"""Work in stages that threads of one compiled function share, without sleeping between stages.

A stage has parts that do not depend on each other; a thread takes the next one whenever it is free, and goes on to the
next stage when all parts are done, whoever did them. So any number of threads finishes any stage: one that the system
runs late or not at all holds nobody up but for the part it has begun. One that fails says so (`abandon`), for the
others would wait for its part for ever: they finish without it, with results that are worth nothing.
"""

from __future__ import annotations

import platform
import time
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from outrider_kernels.compiling import compiled
from outrider_kernels.tile_code import call

_TAKEN, _DONE = 0, 1
_ABANDONED = 1 << 40
"""More parts than any stage has."""
_CACHE_LINE_WORDS = 8
_PARTS_PER_THREAD = 4
_LOOKS_BEFORE_YIELDING = 2000
"""Some tens of microseconds; a stage takes less, unless the system has given a core to somebody else."""
_IS_X86 = platform.machine() in ("x86_64", "AMD64")
_INT32, _INT64 = ir.IntType(32), ir.IntType(64)


class Team(NamedTuple):
    """Threads at the same work."""

    counters: npt.NDArray[np.int64]
    """[stages, 2, 8] parts that were taken and parts that were done, a cache line each; all 0 in the beginning."""
    size: int


def new_counters(num_stages: int) -> npt.NDArray[np.int64]:
    """For so many stages."""
    return np.zeros((num_stages, 2, _CACHE_LINE_WORDS), np.int64)


class Stage(NamedTuple):
    """Work of which every thread takes a share after the other; all threads take all stages in the same order."""

    team: Team
    number: int
    """Counted from 0."""
    num_things: int
    """Things that do not depend on each other."""
    least: int
    """So many are worth taking."""


class Share(NamedTuple):
    """Things [first, end) for this thread to do, if `is_some`; else the stage is done."""

    is_some: bool
    first: int
    end: int


@compiled()
def take_share(stage: Stage) -> Share:
    """A share, or none when all is done: what was written in a stage is seen by every thread that comes after it."""
    counters, count = stage.team.counters[stage.number], stage.num_things
    parts = max(1, min(count // stage.least, _PARTS_PER_THREAD * stage.team.size))
    part = _add(counters[_TAKEN].ctypes.data, 1)
    if part < parts:
        return Share(True, part * count // parts, (part + 1) * count // parts)
    _await(counters[_DONE].ctypes.data, parts)
    return Share(False, count, count)


@compiled()
def next_share(stage: Stage) -> Share:
    """The same for a thread that has done the share it took before."""
    _add(stage.team.counters[stage.number, _DONE].ctypes.data, 1)
    return take_share(stage)


@compiled()
def abandon(team: Team) -> None:
    """Let nobody wait for a thread that failed."""
    for stage in range(len(team.counters)):
        _add(team.counters[stage, _DONE].ctypes.data, _ABANDONED)


def was_abandoned(counters: npt.NDArray[np.int64]) -> bool:
    """Whether a thread failed, after all have returned."""
    return bool((counters[:, _DONE, 0] >= _ABANDONED).any())


@compiled()
def _await(done_at: int, parts: int) -> None:
    looks = 0
    while _read(done_at) < parts:
        looks += 1
        if looks < _LOOKS_BEFORE_YIELDING:
            _pause()
        else:
            _yield_core()


@cache
def cycles_per_s() -> float:
    """How fast the processor's clock ticks; measured once, in 50 ms."""
    began, began_s = _cycles(), time.perf_counter()
    time.sleep(0.05)
    return (_cycles() - began) / (time.perf_counter() - began_s)


@compiled()
def _cycles() -> int:
    now: int = cycles_now()
    return now


@intrinsic  # type: ignore[untyped-decorator]
def _add(_: Any, address: Any, amount: Any) -> Any:
    """Add to a number of 64 bits that other threads add to as well. Returns what it was before."""

    def generate(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
        place = builder.inttoptr(arguments[0], _INT64.as_pointer())
        return builder.atomic_rmw("add", place, arguments[1], "acq_rel")

    return types.int64(types.intp, types.int64), generate


@intrinsic  # type: ignore[untyped-decorator]
def _read(_: Any, address: Any) -> Any:
    """A number of 64 bits that other threads add to."""

    def generate(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
        place = builder.inttoptr(arguments[0], _INT64.as_pointer())
        return builder.load_atomic(place, "acquire", 8)

    return types.int64(types.intp), generate


@intrinsic  # type: ignore[untyped-decorator]
def _pause(_: Any) -> Any:
    """Leave a core's other thread more of it for a moment (Intel's manual, PAUSE); elsewhere nothing."""

    def generate(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
        if _IS_X86:
            call(builder, "llvm.x86.sse2.pause")
        return context.get_dummy_value()

    return types.void(), generate


@intrinsic  # type: ignore[untyped-decorator]
def _yield_core(_: Any) -> Any:
    """Let another thread run on this core, if one wants to (POSIX, sched_yield)."""

    def generate(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
        builder.call(cgutils.get_or_insert_function(builder.module, ir.FunctionType(_INT32, []), "sched_yield"), [])
        return context.get_dummy_value()

    return types.void(), generate


@intrinsic  # type: ignore[untyped-decorator]
def cycles_now(_: Any) -> Any:
    """The processor's clock, which ticks evenly on all cores (Intel's manual, RDTSC)."""

    def generate(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
        kind = ir.FunctionType(_INT64, [])
        return builder.call(cgutils.get_or_insert_function(builder.module, kind, "llvm.readcyclecounter"), [])

    return types.int64(), generate
