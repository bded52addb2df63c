"""The ratio test and block verification: proposed ids are kept by chance, so that what comes out is the target's law.

Words, for a row whose proposed ids are x_1 .. x_k:
    M_j       the target's mass at the position of x_j: the sum of its `outrider_kernels.mass` masses over the ids that
              the filters of `outrider_kernels.verify` keep, given x_1 .. x_{j-1}. At temperature 0 all mass, 2**40, is
              on the arg-max.
    m_j(v)    the mass of id v there; m_j(v) / M_j is the target's probability.
    d_j(v)    the drafter's law in the same unit: trunc(weight(v) * M_j / sum of weights) in float64, multiplied first;
              M_j for an id that was certain. 0 for ids that are not listed.
    r_j, s_j  draws (`outrider_kernels.draws`) of place j of the round, and of x_j's position for its token.

Ratio (Leviathan et al., arXiv 2211.17192, algorithm 1; Chen et al., arXiv 2302.01318)
    x_j is accepted while  r_j * d_j(x_j) / 2**64 < m_j(x_j). At the first failure the token is drawn, by s_j, from the
    rest max(m_j(v) - d_j(v), 0).

Block (Sun et al., arXiv 2403.10444, algorithm 2)
    With p_0 = 1, p_j = min(p_{j-1} * m_j(x_j) / d_j(x_j), 1), and for j < k
        z_j = sum over v of max(p_j * m_{j+1}(v) - d_{j+1}(v), 0) / M_{j+1},  h_j = z_j / (z_j + (1 - p_j)),  h_k = p_k
    the *largest* j with unit(r_j) < h_j is accepted, or none; then the token is drawn from the rest
    max(m_{j+1}(v) - trunc(d_{j+1}(v) / p_j), 0). Never shorter on average than the ratio test, and equal to it for ids
    that were certain. z_j needs the listed ids only, each truncated to a whole number: elsewhere the sum is p_j times
    the mass that is left.

Both: after all k the token is drawn from m_{k+1}. A rest of nothing, which takes a drafter equal to the target and a
rounding, draws from m itself. A draw takes the id at which the sum over ascending ids first exceeds s * rest / 2**64.

What the result depends on
    Unlike equality, these rules emit *which* token depends on the drafts; only the law does not, and that only if
    - each id was drawn from the very law that came with it, by randomness that nothing here sees;
    - whether x_j is proposed at all (depth, truncation, arrival) depends on nothing but what came before x_j;
    - a proposal is verified once.
    With the same drafts, seed and positions the result is the same.
"""

from __future__ import annotations

import numpy as np
import torch

from outrider_kernels.arguments import check_arguments, check_changes
from outrider_kernels.arrays import plain, plain_changes, plain_rows, plain_sampling
from outrider_kernels.bad_rows import logit_array, refuse_bad_rows
from outrider_kernels.contracts import PADDING_ID, SamplingRows, VerifyResult, VerifyRows
from outrider_kernels.draft_rows import DraftRows, check_draft_rows
from outrider_kernels.logits_rows import LogitsRows, stack_changes
from outrider_kernels.ratio_numba import verify_ratio_rows


def verify_by_ratio(
    logits: torch.Tensor,
    rows: VerifyRows,
    sampling: SamplingRows,
    draft: DraftRows,
    changes: LogitsRows | None = None,
    *,
    block: bool = False,
) -> VerifyResult:
    """Verify B rows of proposals by the ratio test, or by block verification.

    Args:
        logits: [N, V] as in `verify.verify`; on a GPU they stay there (`triton_twins.ratio`).
        rows: B rows of proposed ids, N - B in all.
        sampling: B rows of sampling parameters.
        draft: laws of the proposed ids.
        changes: what B rows change about their logits; None is nothing.
        block: verify the ids of a row as one block.

    Returns:
        Accepted counts [B] and emitted ids [N]; unused places hold PADDING_ID. A row without a token to choose at the
        place where it stops is found by `verify.find_exhausted_rows`.

    Raises:
        ValueError: a shape, dtype or range is wrong; or (`BadLogits`) a row's logits are bad, as in
            `verify.verify`.
    """
    if logits.is_cuda:
        from outrider_kernels.triton_twins.ratio import verify_by_ratio_on_gpu

        return verify_by_ratio_on_gpu(logits, rows, sampling, draft, changes, block=block)
    changes = stack_changes([None] * len(rows.first_position)) if changes is None else changes
    check_arguments(logits, rows, sampling)
    check_changes(changes, np.diff(rows.logit_starts), logits.shape[1])
    check_draft_rows(draft, rows.proposed, logits.shape[1])
    refuse_bad_rows(logits, rows.logit_starts)
    result = VerifyResult(np.zeros(len(rows.first_position), np.int32), np.full(len(logits), PADDING_ID, np.int32))
    listed = DraftRows(plain(draft.starts, np.int32), plain(draft.ids, np.int32), plain(draft.weights, np.int64))
    arguments = plain_rows(rows), plain_sampling(sampling), plain_changes(changes)
    verify_ratio_rows(logit_array(logits), *arguments, listed, block, result.accepted_counts, result.emitted)
    return result
