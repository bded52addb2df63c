"""Equality under shared noise: the target's own token at every proposed position, kept while the proposal is the same.

For a row with noise seed s whose j-th emitted token has the absolute position t = first_position + j,

    y_j = argmax over kept v of  logits[j, v] / temperature + g(s, t, v)          (temperature 0: of logits[j, v])

with the noise g of `outrider_kernels.noise`. Proposed x_j is accepted while x_j = y_j; y is emitted up to and including
the first disagreement (the correction), or one past the proposals (the bonus). The emitted tokens are those of plain
decoding, whatever was proposed: argmax of log p + Gumbel noise is a draw from p (Gumbel-max), each position has its own
noise, and the proposals are only compared with the outcome.

The rule
    1. Logits are read as float32, then computed with in float64. Temperatures below GREEDY_BELOW count as 0; filters
       then change nothing. Equal scores: the lowest id wins.
    2. Filters see the distribution after temperature, in the order min-p, top-k, top-p, each what the one before kept;
       all keep a prefix of the ids in the order (logit descending, id ascending):
       min-p keeps v with (logit_v - largest) / temperature >= log(min_p);
       top-k keeps the first top_k, exactly so many even when logits tie;
       top-p keeps v while the mass before it is below top_p times the mass of what top-k kept, masses being the whole
       numbers of `outrider_kernels.mass`.
    3. A logit of -inf is never chosen. Rows with NaN or +inf, or without a finite logit, are refused.
    4. What a request changes about its logits (penalties, bias, masks) comes before all this, by the rule of
       `outrider_kernels.logits_rows`. Where that leaves no finite logit, the row emits no more: `find_exhausted_rows`.

Sources: coupling by shared Gumbel noise, Daliri et al., arXiv 2408.07978; speculative decoding, Leviathan et al.,
arXiv 2211.17192.

Example:
    Two rows, greedy, V = 4. Row 0 proposes (2, 3), row 1 nothing, so there are 3 + 1 logit rows, with the largest
    logits at ids 2, 1, 0 and 3. Row 0 accepts 2, corrects 3 to 1 and stops; row 1 emits its next token:

    >>> logits = torch.eye(4)[[2, 1, 0, 3]]
    >>> rows = VerifyRows(np.int32([0, 3, 4]), np.int32([2, 3]), np.int64([10, 25]))
    >>> greedy = SamplingRows(np.zeros(2), np.zeros(2, np.int32), np.ones(2), np.zeros(2), np.zeros(2, np.uint64))
    >>> verify(logits, rows, greedy)
    VerifyResult(accepted_counts=array([1, 0], dtype=int32), emitted=array([ 2,  1, -1,  3], dtype=int32))
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt
import torch

from outrider_kernels.arguments import check_arguments, check_changes
from outrider_kernels.arrays import plain_changes, plain_rows, plain_sampling
from outrider_kernels.bad_rows import BadLogits, find_bad_rows, logit_array, refuse_bad_rows
from outrider_kernels.contracts import PADDING_ID, SamplingRows, VerifyResult, VerifyRows
from outrider_kernels.logits_rows import LogitsRows, stack_changes
from outrider_kernels.verify_numba import verify_rows

__all__ = ["BadLogits", "find_bad_rows", "find_exhausted_rows", "verify"]


def verify(
    logits: torch.Tensor, rows: VerifyRows, sampling: SamplingRows, changes: LogitsRows | None = None
) -> VerifyResult:
    """Verify B rows of proposals by the rule of this module.

    Args:
        logits: [N, V] float32, bfloat16 or float16. On a GPU they stay there (`triton_twins.verification`, which needs
            triton); in host memory all but float32 are converted.
        rows: B rows of proposed ids, N - B in all.
        sampling: B rows of sampling parameters.
        changes: what B rows change about their logits; None is nothing.

    Returns:
        Accepted counts [B] and emitted ids [N]; unused places hold PADDING_ID. A row's result depends on nothing but
        that row's own arguments and the logits up to its first disagreement.

    Raises:
        ValueError: a shape, dtype or range is wrong, proposed ids included.
        BadLogits: a row's logits are bad, be it after its first disagreement: the first such row is named.
            `find_bad_rows` names all of them; with one start for each logit row, these, and any finite numbers may
            stand in for those after the first bad one.
    """
    if logits.is_cuda:
        from outrider_kernels.triton_twins.verification import verify_on_gpu

        return verify_on_gpu(logits, rows, sampling, changes)
    changes = stack_changes([None] * len(rows.first_position)) if changes is None else changes
    check_arguments(logits, rows, sampling)
    check_changes(changes, np.diff(rows.logit_starts), logits.shape[1])
    refuse_bad_rows(logits, rows.logit_starts)
    accepted_counts = np.zeros(len(rows.first_position), np.int32)
    emitted = np.full(logits.shape[0], PADDING_ID, np.int32)
    verify_rows(
        logit_array(logits),
        plain_rows(rows),
        plain_sampling(sampling),
        plain_changes(changes),
        _ids(logits.shape[1]),
        accepted_counts,
        emitted,
    )
    return VerifyResult(accepted_counts, emitted)


def find_exhausted_rows(rows: VerifyRows, result: VerifyResult) -> npt.NDArray[np.int32]:
    """Rows that came to a position at which their changes left no token to choose.

    Returns:
        [exhausted rows] int32, ascending indices in [0, B). What they emitted before is as good as any.
    """
    last = result.emitted[rows.logit_starts[:-1] + result.accepted_counts]
    return np.flatnonzero(last == PADDING_ID).astype(np.int32)


@lru_cache(maxsize=4)
def _ids(vocab_size: int) -> npt.NDArray[np.int32]:
    return np.arange(vocab_size, dtype=np.int32)
