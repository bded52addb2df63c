"""The ratio rules for logits that live on a GPU: masses in plain torch, decisions and draws in Triton."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from outrider_kernels.arguments import GREEDY_BELOW, check_arguments
from outrider_kernels.contracts import PADDING_ID, SamplingRows, VerifyResult, VerifyRows
from outrider_kernels.draft_rows import MAX_LISTED_IDS, DraftRows, check_draft_rows
from outrider_kernels.mass import MASS_ONE, masses
from outrider_kernels.reference import refuse_bad
from outrider_kernels.triton_twins.registry import LAUNCH_OPTIONS


def verify_by_ratio_on_device(
    logits: torch.Tensor, rows: VerifyRows, sampling: SamplingRows, draft: DraftRows, *, block: bool = False
) -> VerifyResult:
    """`outrider_kernels.ratio_verify.verify_by_ratio` on the device of the logits; rows change nothing about theirs.

    Raises:
        ValueError: likewise.
    """
    from outrider_kernels.triton_twins.ratio_triton import MAX_DEPTH, TOKEN_BLOCK, draw_tokens, stop_rows

    check_arguments(logits, rows, sampling)
    check_draft_rows(draft, rows.proposed, logits.shape[1])
    refuse_bad(logits, rows)
    device, count = logits.device, len(rows.first_position)
    depths = np.diff(rows.logit_starts) - 1
    if depths.max(initial=0) > MAX_DEPTH:
        raise ValueError(f"expected at most {MAX_DEPTH} proposed ids in a row, given {depths.max()}")
    law = masses_of(logits, sampling, np.repeat(np.arange(count), depths + 1))
    totals = law.sum(1)
    accepted = torch.zeros(count, dtype=torch.int32, device=device)
    emitted = torch.full((len(logits),), PADDING_ID, dtype=torch.int32, device=device)
    starts, proposed = _on(device, rows.logit_starts), _on(device, rows.proposed)
    seeds, positions = _on(device, sampling.seed), _on(device, rows.first_position)
    row_arguments = law, totals, starts, proposed, seeds, positions
    laws = (_on(device, part) for part in draft)
    size = logits.shape[1]
    stop_rows[(count,)](
        *row_arguments, *laws, accepted, size, BLOCK_RULE=block, LISTED=MAX_LISTED_IDS, num_warps=1, **LAUNCH_OPTIONS
    )
    draw_tokens[(count,)](*row_arguments, accepted, emitted, size, BLOCK=TOKEN_BLOCK, DEPTH=MAX_DEPTH, **LAUNCH_OPTIONS)
    return VerifyResult(accepted.cpu().numpy(), emitted.cpu().numpy())


def masses_of(logits: torch.Tensor, sampling: SamplingRows, owners: npt.NDArray[np.int64]) -> torch.Tensor:
    """Masses [N, V] int64 of all positions by the filters of their rows; 0 for ids that are left out.

    Args:
        logits: [N, V] of a float dtype.
        sampling: B rows.
        owners: [N] the row of each position.
    """
    device = logits.device
    temperature, top_p, min_p = (
        torch.from_numpy(values[owners])[:, None].to(device)
        for values in (sampling.temperature, sampling.top_p, sampling.min_p)
    )
    top_k = torch.from_numpy(sampling.top_k[owners].astype(np.int64))[:, None].to(device)
    largest_first, order = logits.float().double().sort(dim=1, descending=True, stable=True)
    is_greedy = temperature < GREEDY_BELOW
    exponents = (largest_first - largest_first[:, :1]) * torch.where(is_greedy, 1.0, 1.0 / temperature)
    ranks = torch.arange(logits.shape[1], device=device)[None]
    kept = exponents >= torch.where(min_p > 0, min_p, 0.0).log()
    kept &= (ranks < top_k) | (top_k == 0)
    mass = torch.where(kept, masses(exponents), 0)
    before = mass.cumsum(1) - mass
    mass = torch.where((before.double() < top_p * mass.sum(1, keepdim=True).double()) | (top_p >= 1), mass, 0)
    one = torch.where(ranks == 0, int(MASS_ONE), 0)
    return torch.zeros_like(mass).scatter_(1, order, torch.where(is_greedy, one, mass))


def _on(device: torch.device, values: npt.NDArray[np.generic]) -> torch.Tensor:
    # One place more than needed: an empty array has no address to hand to a kernel.
    padded = np.append(values, values.dtype.type(0)) if len(values) == 0 else values
    return torch.from_numpy(np.ascontiguousarray(padded)).to(device)
