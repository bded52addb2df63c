"""Whole steps on a GPU: whether they are right, and what they take.

    python benchmarks/serving/gpu_steps.py [--model demo] [--dtype bfloat16]

1. Loading compares logits with those of transformers' definition; 2. the probe of a target's start; 3. steps as
recordings and kernel by kernel, whose logits must be equal. Any difference ends the run. Then a Markdown table of
milliseconds a step, logits waited for. Without a GPU it says so and exits with status 2.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import NamedTuple, get_args

import numpy as np
import torch

from outrider_runtime.models.loading import ModelDtype
from outrider_runtime.models.progress import choose_progress
from outrider_runtime.models.source import resolve_source
from outrider_target.forward import RaggedBatch
from outrider_target.forward_choice import choose_forward
from outrider_target.gpu.gpu_forward import GpuForward
from outrider_target.probe import probe_exactness

_MAX_MODEL_LEN = 2048
_BLOCK_SIZE = 16
_REPETITIONS = 20
_ROWS, _TOKENS_PER_ROW = (1, 4, 16, 64), (1, 2, 5, 9)
_PROMPTS = (128, 512, 1024)


class Shape(NamedTuple):
    """A step of equal rows."""

    rows: int
    tokens_per_row: int
    context: int
    """Tokens of a row that are in the cache."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="demo", help="demo, a folder, or a hub id")
    parser.add_argument("--dtype", default="bfloat16", choices=get_args(ModelDtype))
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print("No GPU at hand: nothing was measured, and there is nothing to report.", file=sys.stderr)
        sys.exit(2)
    folder = resolve_source(options.model, progress=choose_progress(sys.stderr))
    measure(folder, options.dtype)


def measure(folder: Path, dtype: ModelDtype) -> None:
    """Check, then print the table."""
    chosen = choose_forward(folder, dtype, _MAX_MODEL_LEN, device="cuda")
    forward = chosen.forward
    assert isinstance(forward, GpuForward)
    print(f"{chosen.description}, torch {torch.__version__}, CUDA {torch.version.cuda}\n")
    probed = probe_exactness(forward)
    if not probed.exact:
        sys.exit(probed.reason)
    shapes = [Shape(rows, tokens, 200) for rows, tokens in product(_ROWS, _TOKENS_PER_ROW)]
    forward.allocate_cache(max(map(_blocks, shapes)))
    for shape in shapes:
        if is_changed_by_recording(forward, shape):
            sys.exit(f"a recorded step of {shape} has other logits than its kernels one by one")
    print("| rows | tokens a row | after | ms recorded | ms kernel by kernel |\n|---|---|---|---|---|")
    for shape in (*shapes, *(Shape(1, count, 0) for count in _PROMPTS)):
        step = batch_of(shape, forward.vocab_size)
        times = [_median_ms(run, step) for run in (forward.run, forward.run_kernels)]
        print(f"| {' | '.join(map(str, shape))} | {' | '.join(f'{ms:.2f}' for ms in times)} |", flush=True)


def is_changed_by_recording(forward: GpuForward, shape: Shape) -> bool:
    """Whether a step has other logits as a recording than kernel by kernel."""
    step = batch_of(shape, forward.vocab_size)
    return not torch.equal(forward.run(step), forward.run_kernels(step))


def batch_of(shape: Shape, vocab_size: int) -> RaggedBatch:
    """A step of random ids, in blocks of each row's own; logits are wanted of the last nine tokens of a row."""
    rows, count, context = shape
    width = _blocks(shape) // rows
    wanted = [at for row in range(rows) for at in range(row * count + max(0, count - 9), (row + 1) * count)]
    return RaggedBatch(
        token_ids=np.random.default_rng(count).integers(0, vocab_size, rows * count),
        positions=np.tile(np.arange(context, context + count, dtype=np.int32), rows),
        row_starts=np.arange(0, rows * count + 1, count, dtype=np.int32),
        block_tables=np.arange(rows * width, dtype=np.int32).reshape(rows, width),
        logit_indices=np.array(wanted, np.int64),
    )


def _blocks(shape: Shape) -> int:
    return shape.rows * -(-(shape.context + shape.tokens_per_row) // _BLOCK_SIZE)


def _median_ms(run: Callable[[RaggedBatch], torch.Tensor], step: RaggedBatch) -> float:
    def times_ms() -> Iterator[float]:
        for _ in range(_REPETITIONS):
            began = time.perf_counter()
            run(step)[:1, :1].cpu()
            yield (time.perf_counter() - began) * 1e3

    run(step)[:1, :1].cpu()
    return statistics.median(times_ms())


if __name__ == "__main__":
    main()
