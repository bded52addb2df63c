"""Pretended acceptance: proposed ids are kept by a coin of given chances, whatever they say. For load tests only.

A row accepts its j-th proposed id while  unit(r_j) < rates[j - 1], with the draws r_j of `ratio_verify`. Then it emits
a token drawn from the target's own law after what it accepted. So what comes out is *not* what the target would say:
the drafts are in it. Rates are those of an id after all before it were accepted.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from outrider_kernels.arguments import check_arguments, check_changes, check_rates
from outrider_kernels.arrays import plain, plain_changes, plain_rows, plain_sampling
from outrider_kernels.bad_rows import logit_array, refuse_bad_rows
from outrider_kernels.contracts import PADDING_ID, SamplingRows, VerifyResult, VerifyRows
from outrider_kernels.logits_rows import LogitsRows, stack_changes
from outrider_kernels.synthetic_numba import verify_synthetic_rows


def verify_synthetic(
    logits: torch.Tensor,
    rows: VerifyRows,
    sampling: SamplingRows,
    rates: npt.NDArray[np.float64],
    changes: LogitsRows | None = None,
) -> VerifyResult:
    """Keep proposals of B rows by chance.

    Args:
        logits: [N, V] as in `verify.verify`; on a GPU they stay there (`triton_twins.synthetic`).
        rows: B rows of proposed ids, N - B in all.
        sampling: B rows of sampling parameters.
        rates: [R] chances in [0, 1] by place in the proposal; at places from R on nothing is accepted.
        changes: what B rows change about their logits; None is nothing.

    Returns:
        Accepted counts [B] and emitted ids [N]; unused places hold PADDING_ID. A row without a token to choose after
        what it accepted is found by `verify.find_exhausted_rows`.

    Raises:
        ValueError: a shape, dtype or range is wrong; or (`BadLogits`) a row's logits are bad, as in
            `verify.verify`.
    """
    if logits.is_cuda:
        from outrider_kernels.triton_twins.synthetic import verify_synthetic_on_gpu

        return verify_synthetic_on_gpu(logits, rows, sampling, rates, changes)
    changes = stack_changes([None] * len(rows.first_position)) if changes is None else changes
    check_arguments(logits, rows, sampling)
    check_changes(changes, np.diff(rows.logit_starts), logits.shape[1])
    check_rates(rates)
    refuse_bad_rows(logits, rows.logit_starts)
    result = VerifyResult(np.zeros(len(rows.first_position), np.int32), np.full(len(logits), PADDING_ID, np.int32))
    arguments = plain_rows(rows), plain_sampling(sampling), plain_changes(changes)
    # numba reads the first rate before it looks whether there is one, so a rate that keeps nothing comes last.
    rates = plain(np.append(rates, 0.0), np.float64)
    verify_synthetic_rows(logit_array(logits), *arguments, rates, result.accepted_counts, result.emitted)
    return result
