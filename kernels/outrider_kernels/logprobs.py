"""Log-probabilities of the target itself: what the model said, before penalties, bias, masks, temperature and filters.

    log p_v = z_v - log(sum_u exp(z_u))      by `torch.log_softmax` in float32, over the raw logits z of a position

The likeliest ids come in the order (log-probability descending, id ascending), so that ties are settled.
`log_softmax`, since `logsumexp` and `sum` give a single row other last bits than the same row among others. On a GPU,
`triton_twins.logprobs` sums whole numbers instead: other last bits, and none that depend on the other rows either.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch


class Logprobs(NamedTuple):
    """Log-probabilities of M positions."""

    chosen: npt.NDArray[np.float32]
    """[M] of the ids that were chosen."""
    ranks: npt.NDArray[np.int64]
    """[M] places of the chosen ids in that order, from 1."""
    top_ids: npt.NDArray[np.int32]
    """[M, top] the likeliest ids, likeliest first."""
    top: npt.NDArray[np.float32]
    """[M, top] theirs; -inf where the logit is."""


def log_probabilities(logits: torch.Tensor, chosen: npt.NDArray[np.int64], top: int) -> Logprobs:
    """Log-probabilities of chosen and likeliest ids.

    Args:
        logits: [M, V] of a float dtype, raw, read as float32; without NaN and +inf.
        chosen: [M] ids in [0, V).
        top: likeliest ids wanted, 0 or more; V at most are given.
    """
    if logits.is_cuda:
        from outrider_kernels.triton_twins.logprobs import log_probabilities_on_gpu

        return log_probabilities_on_gpu(logits, chosen, top)
    logprobs = torch.log_softmax(logits.detach().to("cpu", torch.float32), dim=-1)
    ids = torch.from_numpy(chosen)[:, None]
    top_ids = torch.stack([_likeliest(row, min(top, logits.shape[1])) for row in logprobs])
    return Logprobs(
        logprobs.gather(1, ids)[:, 0].numpy(),
        _ranks(logprobs, ids).numpy(),
        top_ids.to(torch.int32).numpy(),
        logprobs.gather(1, top_ids).numpy(),
    )


def _ranks(logprobs: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    """[M] from [M, V] and [M, 1]: ids that are likelier, or as likely and lower, and the chosen one itself."""
    own = logprobs.gather(1, ids)
    is_lower = torch.arange(logprobs.shape[1]) < ids
    return ((logprobs > own) | ((logprobs == own) & is_lower)).sum(dim=1) + 1


def _likeliest(row: torch.Tensor, count: int) -> torch.Tensor:
    """[count] ids; `topk` alone leaves the order of equal values open."""
    if count == 0:
        return torch.zeros(0, dtype=torch.int64)
    smallest = row.topk(count).values[-1]
    candidates = (row >= smallest).nonzero()[:, 0]
    order = row[candidates].sort(descending=True, stable=True).indices
    return candidates[order[:count]]
