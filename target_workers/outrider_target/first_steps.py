"""Steps that a target on a GPU takes before it serves, so that no request waits for what happens once.

A step is recorded when the first of its size runs, and kernels of verification are compiled for each count of rows.
"""

from __future__ import annotations

import logging

import numpy as np
import torch

from outrider_kernels.contracts import SamplingRows, VerifyRows
from outrider_kernels.draft_rows import certain
from outrider_kernels.logits_rows import RowChange, stack_changes
from outrider_runtime.clock import Clock
from outrider_target.acceptance_rule import AcceptanceRule
from outrider_target.cost_profiler import StepBounds, common_steps
from outrider_target.forward import Forward, RaggedBatch
from outrider_target.rule_kernels import apply_rule

_LOG = logging.getLogger(__name__)
_TEMPERATURES = (0.0, 1.0)


def take_first_steps(forward: Forward, rule: AcceptanceRule, bounds: StepBounds, clock: Clock) -> None:
    """Run every common number of rows and depth once, and verify it as requests of all kinds would be.

    Args:
        forward: the model, with a cache that nobody uses yet; its first block is written to.
        rule: by which proposals are accepted.
        bounds: steps that can occur.
        clock: tells the log how long it took.
    """
    started_s = clock.now_s()
    for batch in common_steps(bounds, forward.cache_shape.block_size):
        logits = forward.run(batch)
        for temperature in _TEMPERATURES:
            for change in (None, RowChange(bias_ids=np.zeros(1, np.int32), bias_values=np.ones(1))):
                _verify(logits, batch, rule, temperature, change)
    _LOG.info("first steps took %.1f s", clock.now_s() - started_s)


def _verify(
    logits: torch.Tensor, batch: RaggedBatch, rule: AcceptanceRule, temperature: float, change: RowChange | None
) -> None:
    starts = batch.row_starts
    count = len(starts) - 1
    proposed = np.zeros(len(batch.token_ids) - count, np.int32)
    rows = VerifyRows(starts, proposed, np.zeros(count, np.int64))
    sampling = SamplingRows(
        np.full(count, temperature),
        np.full(count, 20, np.int32),
        np.full(count, 0.9),
        np.full(count, 0.01),
        np.zeros(count, np.uint64),
    )
    apply_rule(rule, logits, rows, sampling, lambda: certain(len(proposed)), stack_changes([change] * count))
