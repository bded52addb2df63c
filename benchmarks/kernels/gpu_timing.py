"""Times of calls on a GPU."""

from __future__ import annotations

import statistics
from collections.abc import Callable

import torch

_WARM_UPS = 5
_REPETITIONS = 30


def device_ms(action: Callable[[], object]) -> float:
    """Mean time that the device is busy with a call, its small copies included; caches are not flushed in between."""
    for _ in range(_WARM_UPS):
        action()
    torch.cuda.synchronize()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        for _ in range(_REPETITIONS):
            action()
        torch.cuda.synchronize()
    microseconds = [float(event.self_device_time_total) for event in profile.key_averages()]
    return sum(microseconds) / 1e3 / _REPETITIONS


def median_ms(action: Callable[[], object]) -> float:
    """Median time of a call on the device's clock, its copies to the host included, caches flushed before each."""
    flush = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
    times: list[float] = []
    for repetition in range(_WARM_UPS + _REPETITIONS):
        flush.zero_()
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        begin.record()
        action()
        end.record()
        end.synchronize()
        if repetition >= _WARM_UPS:
            times.append(float(begin.elapsed_time(end)))
    return statistics.median(times)
