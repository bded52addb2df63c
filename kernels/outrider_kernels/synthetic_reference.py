"""The rule of `outrider_kernels.synthetic_verify` in plain Python: the specification. Fast forms must equal it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from outrider_kernels.arguments import check_arguments, check_changes, check_rates
from outrider_kernels.changed_logits_reference import changed_logits_reference
from outrider_kernels.contracts import PADDING_ID, SamplingRows, VerifyResult, VerifyRows
from outrider_kernels.draws import FIRST_TEST_PURPOSE, TOKEN_PURPOSE, draw, unit
from outrider_kernels.logits_rows import LogitsRows, stack_changes
from outrider_kernels.ratio_reference import token_from, token_law
from outrider_kernels.reference import refuse_bad


def verify_synthetic_reference(
    logits: torch.Tensor,
    rows: VerifyRows,
    sampling: SamplingRows,
    rates: npt.NDArray[np.float64],
    changes: LogitsRows | None = None,
) -> VerifyResult:
    """`outrider_kernels.synthetic_verify.verify_synthetic`, row by row. Raises ValueError likewise."""
    changes = stack_changes([None] * len(rows.first_position)) if changes is None else changes
    check_arguments(logits, rows, sampling)
    check_changes(changes, np.diff(rows.logit_starts), logits.shape[1])
    check_rates(rates)
    refuse_bad(logits, rows)
    accepted_counts = np.zeros(len(rows.first_position), np.int32)
    emitted = np.full(logits.shape[0], PADDING_ID, np.int32)
    for row in range(len(accepted_counts)):
        start, end = int(rows.logit_starts[row]), int(rows.logit_starts[row + 1])
        proposed = rows.proposed[start - row : end - row - 1].tolist()
        seed, position = int(sampling.seed[row]), int(rows.first_position[row])
        stop = synthetic_stop(seed, position, rates[: len(proposed)].tolist())
        at = changed_logits_reference(logits[start + stop], changes, row, proposed[:stop])
        temperature, top_p, min_p = (
            float(values[row]) for values in (sampling.temperature, sampling.top_p, sampling.min_p)
        )
        law = token_law(at, temperature, int(sampling.top_k[row]), top_p, min_p)
        emitted[start : start + stop] = proposed[:stop]
        if law:
            emitted[start + stop] = token_from(law, draw(seed, position + stop, TOKEN_PURPOSE))
        accepted_counts[row] = stop
    return VerifyResult(accepted_counts, emitted)


def synthetic_stop(seed: int, position: int, rates: list[float]) -> int:
    """How many proposed ids are accepted. `rates` are those of the places that have both a proposal and a rate."""
    for step, rate in enumerate(rates):
        if unit(draw(seed, position, FIRST_TEST_PURPOSE + step)) >= rate:
            return step
    return len(rates)
