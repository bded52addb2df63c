"""The specification of sampling and verification in plain PyTorch: sort, mask, arg-max. Fast forms must equal it."""

from __future__ import annotations

import math

import numpy as np
import torch

from outrider_kernels.arguments import GREEDY_BELOW, check_arguments, check_changes
from outrider_kernels.changed_logits_reference import changed_logits_reference
from outrider_kernels.contracts import PADDING_ID, SamplingRows, VerifyResult, VerifyRows
from outrider_kernels.logits_rows import LogitsRows, stack_changes
from outrider_kernels.mass import masses
from outrider_kernels.noise import gumbel_torch, hash_ids_torch, row_key


def sample_reference(
    logits_row: torch.Tensor, temperature: float, top_k: int, top_p: float, min_p: float, seed: int, position: int
) -> int:
    """The target's own token at one position; see `outrider_kernels.verify` for the rules.

    Args:
        logits_row: [V] of a float dtype, read as float32.
        temperature: below GREEDY_BELOW is greedy.
        top_k: 0 keeps all.
        top_p: in (0, 1].
        min_p: in [0, 1].
        seed: noise seed, 64 bits.
        position: absolute index, in prompt + output, of the token.

    Raises:
        ValueError: the row holds NaN or +inf, or nothing but -inf.
    """
    logits = logits_row.detach().to("cpu", torch.float32).double()
    if torch.isnan(logits).any() or not logits.max().isfinite():
        raise ValueError("expected logits without NaN and +inf, and one finite logit at least, in row 0")
    if temperature < GREEDY_BELOW:
        return _lowest_index_of_largest(logits)
    inverse = 1.0 / temperature
    kept = kept_ids(logits, inverse, top_k, top_p, min_p)
    noise = gumbel_torch(hash_ids_torch(row_key(seed, position), kept))
    return int(kept[_lowest_index_of_largest(logits[kept] * inverse + noise)])


def _lowest_index_of_largest(scores: torch.Tensor) -> int:
    return int((scores == scores.max()).nonzero()[0])


def kept_ids(logits: torch.Tensor, inverse_temperature: float, top_k: int, top_p: float, min_p: float) -> torch.Tensor:
    """Ids that min-p, then top-k, then top-p keep; ascending, int64."""
    order = torch.sort(logits, descending=True, stable=True).indices
    exponents = (logits[order] - logits.max()) * inverse_temperature
    count = int((exponents >= math.log(min_p)).sum()) if min_p > 0 else len(order)
    if top_k > 0:
        count = min(count, top_k)
    if top_p < 1:
        mass = masses(exponents[:count])
        before = mass.cumsum(0) - mass
        count = int((before.double() < top_p * mass.sum().double()).sum())
    return order[:count].sort().values


def verify_reference(
    logits: torch.Tensor, rows: VerifyRows, sampling: SamplingRows, changes: LogitsRows | None = None
) -> VerifyResult:
    """`outrider_kernels.verify.verify`, row by row and position by position. Raises ValueError likewise."""
    changes = stack_changes([None] * len(rows.first_position)) if changes is None else changes
    check_arguments(logits, rows, sampling)
    check_changes(changes, np.diff(rows.logit_starts), logits.shape[1])
    accepted_counts = np.zeros(len(rows.first_position), np.int32)
    emitted = np.full(logits.shape[0], PADDING_ID, np.int32)
    refuse_bad(logits, rows)
    for row in range(len(accepted_counts)):
        start, depth = int(rows.logit_starts[row]), int(rows.logit_starts[row + 1] - rows.logit_starts[row]) - 1
        for step in range(depth + 1):
            changed = changed_logits_reference(
                logits[start + step], changes, row, emitted[start : start + step].tolist()
            )
            if changed.max() == -torch.inf:
                break
            token = sample_reference(
                changed,
                float(sampling.temperature[row]),
                int(sampling.top_k[row]),
                float(sampling.top_p[row]),
                float(sampling.min_p[row]),
                int(sampling.seed[row]),
                int(rows.first_position[row]) + step,
            )
            emitted[start + step] = token
            if step == depth or token != rows.proposed[start - row + step]:
                break
            accepted_counts[row] += 1
    return VerifyResult(accepted_counts, emitted)


def refuse_bad(logits: torch.Tensor, rows: VerifyRows) -> None:
    """Raise ValueError at the first row with logits out of which no token can be chosen."""
    wrong = torch.isnan(logits).any(1) | ~logits.amax(1).isfinite() if len(logits) else torch.zeros(0)
    for row in range(len(rows.first_position)):
        if wrong[rows.logit_starts[row] : rows.logit_starts[row + 1]].any():
            raise ValueError(f"expected logits without NaN and +inf, and one finite logit at least, in row {row}")
