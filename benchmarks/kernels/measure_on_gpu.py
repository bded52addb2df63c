"""Everything there is to measure about verification on a GPU, in one command, as Markdown.

python benchmarks/kernels/measure_on_gpu.py

1. Ids against those of the CPU, for every shape and filter: any difference ends the run.
2. Bandwidth: bytes of logits over the time that the device spends on a call, launches and the host left out, against
   bytes moved by a copy on the device. The copy reads and writes, so that it moves each byte twice.
3. Time of the whole call, result on the host, against vLLM's and FlashInfer's samplers where they are installed.

Without a GPU it says so and exits with status 2.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable

import torch

from gpu_peers import peers
from gpu_shapes import FILTERINGS, SHAPES, Batch, Filtering, Shape, batch
from outrider_kernels.triton_twins.verification import verify_on_gpu
from outrider_kernels.verify import verify

_WARM_UPS = 5
_REPETITIONS = 30


def main() -> None:
    if not torch.cuda.is_available():
        print("No GPU at hand: nothing was measured, and there is nothing to report.", file=sys.stderr)
        sys.exit(2)
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, CUDA {torch.version.cuda}\n")
    print("| rows x positions x ids | choice | ms a call | ms on the device | GB/s of logits | of a copy's |")
    print("|---|---|---|---|---|---|")
    for shape in SHAPES:
        copied = _copy_bytes_a_ms(shape)
        for filtering in FILTERINGS:
            print(_line(shape, filtering, copied), flush=True)
    print("\n| rows x positions x ids | by | ms a call |\n|---|---|---|")
    for shape in SHAPES:
        _compare_with_peers(shape)


def _line(shape: Shape, filtering: Filtering, copy_bytes_a_ms: float) -> str:
    given = batch(shape, filtering, "cuda")
    _require_same_ids(given, f"{shape}, {filtering.name}")
    call_ms, device_ms = _median_ms(lambda: verify_on_gpu(*given)), _device_ms(lambda: verify_on_gpu(*given))
    rate = given.logits.nbytes / device_ms
    figures = f"{call_ms:.3f} | {device_ms:.3f} | {rate / 1e6:.0f} | {rate / copy_bytes_a_ms:.0%}"
    return f"| {shape} | {filtering.name} | {figures} |"


def _require_same_ids(given: Batch, name: str) -> None:
    on_gpu = verify_on_gpu(*given)
    on_cpu = verify(given.logits.cpu(), given.rows, given.sampling)
    for ours, theirs in zip(on_gpu, on_cpu, strict=True):
        if ours.tolist() != theirs.tolist():
            sys.exit(f"{name}: {(ours != theirs).sum()} of {ours.size} differ from the CPU's")


def _compare_with_peers(shape: Shape) -> None:
    given = batch(shape, FILTERINGS[1], "cuda")
    print(f"| {shape} | ours | {_median_ms(lambda: verify_on_gpu(*given)):.3f} |", flush=True)
    for peer in peers(given):
        try:
            took = f"{_median_ms(peer.verify):.3f}"
        except Exception as error:  # another version may ask for other arguments: the table says so
            took = f"failed: {type(error).__name__}: {error}".splitlines()[0]
        print(f"| {shape} | {peer.name} | {took} |", flush=True)


def _copy_bytes_a_ms(shape: Shape) -> float:
    """Bytes that a copy on the device moves, read and written."""
    source = torch.empty(shape.rows * (shape.depth + 1), shape.vocab_size, dtype=shape.dtype, device="cuda")
    target = torch.empty_like(source)
    return 2 * source.nbytes / _device_ms(lambda: target.copy_(source))


def _device_ms(action: Callable[[], object]) -> float:
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


def _median_ms(action: Callable[[], object]) -> float:
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


if __name__ == "__main__":
    main()
