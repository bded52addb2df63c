"""Measures what steps of a model cost on this machine, in seconds once, and remembers it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numba
import numpy as np
import torch

from outrider_kernels.sources import kernels_version
from outrider_runtime.clock import Clock
from outrider_runtime.errors import InvalidConfig
from outrider_target.control.cost_model import StepLoad, StepSample
from outrider_target.control.cost_profile import CostProfile, ProfileKey, load_profile
from outrider_target.forward import Forward, RaggedBatch
from outrider_target.hardware import cpu_name
from outrider_target.settings import Device

_LOG = logging.getLogger(__name__)

BUDGET_S = 8.0
"""What a start may spend on measuring."""
_TURNS = 4
_LEAST_SHAPES = 4
_POOL_TOKENS = 4096
"""Cached tokens that the measured steps read; rows beyond that share them."""
_SHORT, _LONG = 64, 512


@dataclass(frozen=True, slots=True)
class StepBounds:
    """The steps that can occur."""

    max_rows: int
    """Sequences in a step at most."""
    max_depth: int
    """Proposed tokens per row at most."""
    max_length: int
    """Tokens of a sequence at most."""
    max_tokens: int
    """Tokens of a step at most."""

    def tokens_per_row(self, rows: int, depth: int) -> int:
        """Tokens of each of `rows` rows that propose `depth`, as far as the step holds them; at least 1."""
        return max(1, min(1 + depth, self.max_tokens // rows))

    @property
    def greatest(self) -> StepLoad:
        """The most rows, and the most tokens of that many equal rows."""
        return StepLoad(self.max_rows, self.max_rows * self.tokens_per_row(self.max_rows, self.max_depth))


class _Shape(NamedTuple):
    """A step of equal rows."""

    rows: int
    tokens_per_row: int
    context: int

    @property
    def load(self) -> StepLoad:
        return StepLoad(self.rows, self.rows * self.tokens_per_row, self.rows * self.context)


def cost_profile(forward: Forward, key: ProfileKey, bounds: StepBounds, folder: Path, clock: Clock) -> CostProfile:
    """The profile for `key`: what was measured here before, or measured now. Leaves `forward` with a small cache.

    Args:
        forward: the model.
        key: what holds here.
        bounds: steps that can occur.
        folder: where profiles are kept.
        clock: measures the steps.
    """
    path = folder / f"{key.digest}.json"
    if path.exists():
        try:
            profile = load_profile(path)
            profile.check_holds(key, path)
            profile.check_reaches(bounds.greatest, path)
        except InvalidConfig as error:
            _LOG.warning("step costs are measured anew: %s", error)
        else:
            return profile
    started_s = clock.now_s()
    profile = CostProfile(key, measure_steps(forward, bounds, clock))
    _LOG.info("step costs measured in %.1f s, %d kinds of steps", clock.now_s() - started_s, len(profile.samples))
    try:
        profile.save(path)
    except OSError as error:
        _LOG.warning("step costs will be measured again at the next start: %s", error)
    return profile


def given_profile(path: Path, key: ProfileKey, bounds: StepBounds) -> CostProfile:
    """The profile in a file that the configuration names. Where it ends below the bounds it serves, with a warning.

    Raises:
        InvalidConfig: it is no profile, or was taken elsewhere.
    """
    profile = load_profile(path)
    profile.check_holds(key, path)
    try:
        profile.check_reaches(bounds.greatest, path)
    except InvalidConfig as error:
        _LOG.warning("what larger steps cost is guessed: %s", error)
    return profile


def measure_steps(
    forward: Forward, bounds: StepBounds, clock: Clock, budget_s: float = BUDGET_S
) -> tuple[StepSample, ...]:
    """Time steps over rows, tokens and context, the most telling ones first, until all are done or time is up.

    The least and the greatest steps come first, so that a measurement cut short reaches its bounds too.

    Every kind is timed in several turns, some time apart, and its best time counts: pauses of a busy machine, and the
    first use of pages and caches, only ever add.

    Args:
        forward: the model; left with a small cache.
        bounds: steps that can occur.
        clock: measures the steps.
        budget_s: seconds after which no further step is begun.
    """
    block_size = forward.cache_shape.block_size
    num_blocks = _POOL_TOKENS // block_size
    forward.allocate_cache(num_blocks)
    best_s: dict[StepLoad, float] = {}
    started_s = clock.now_s()
    for turn in range(_TURNS):
        for shape in _grid(bounds):
            if len(best_s) >= _LEAST_SHAPES and clock.now_s() - started_s > budget_s * (turn + 1) / _TURNS:
                break
            took_s = _timed_s(forward, _decode_batch(shape, block_size, num_blocks), clock)
            best_s[shape.load] = min(took_s, best_s.get(shape.load, took_s))
    return tuple(StepSample(load, seconds) for load, seconds in best_s.items())


def common_steps(bounds: StepBounds, block_size: int) -> Iterator[RaggedBatch]:
    """Steps of every number of rows and depth that is measured, over short texts that all lie in the first block."""
    kinds = dict.fromkeys((shape.rows, shape.tokens_per_row) for shape in _grid(bounds))
    for rows, per_row in kinds:
        yield _decode_batch(_Shape(rows, per_row, 0), block_size, num_blocks=1)


def _grid(bounds: StepBounds) -> Iterator[_Shape]:
    rows = sorted({*(1 << i for i in range(bounds.max_rows.bit_length())), bounds.max_rows})
    depths = sorted({0, *(depth for depth in (1, 2, 4) if depth < bounds.max_depth), bounds.max_depth})
    long = max(1, min(_LONG, bounds.max_length - depths[-1] - 1))
    short = min(_SHORT, long)
    ends = (depths[0], depths[-1])
    wanted = [
        *((count, depth, short) for depth in ends for count in (rows[0], rows[-1])),
        *((count, depth, short) for depth in ends for count in rows),
        *((count, depth, long) for count in rows[::2] for depth in ends),
        *((count, depth, short) for depth in depths[1:-1] for count in rows),
    ]
    shapes = (_Shape(count, bounds.tokens_per_row(count, depth), context) for count, depth, context in wanted)
    yield from dict.fromkeys(shapes)


def _decode_batch(shape: _Shape, block_size: int, num_blocks: int) -> RaggedBatch:
    rows, per_row, context = shape
    width = -(-(context + per_row) // block_size)
    tables = (np.arange(rows)[:, None] * width + np.arange(width)) % num_blocks
    return RaggedBatch(
        token_ids=np.zeros(rows * per_row, np.int64),
        positions=np.tile(np.arange(context, context + per_row, dtype=np.int32), rows),
        row_starts=np.arange(0, rows * per_row + 1, per_row, dtype=np.int32),
        block_tables=tables.astype(np.int32),
        logit_indices=np.arange(rows * per_row, dtype=np.int64),
    )


def _timed_s(forward: Forward, batch: RaggedBatch, clock: Clock) -> float:
    started_s = clock.now_s()
    forward.run(batch)
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return max(clock.now_s() - started_s, 1e-9)


def hardware_name(device: Device) -> str:
    """The device that steps run on, in words that differ where speed does."""
    if device == "cuda":
        return torch.cuda.get_device_name()
    return cpu_name()


def library_versions(forward: str) -> str:
    """The libraries and kernels that do the work, and which forward pass is served."""
    return f"torch {torch.__version__}, numba {numba.__version__}, kernels {kernels_version()}, {forward}"
