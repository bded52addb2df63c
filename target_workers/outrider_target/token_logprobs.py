"""Log-probabilities of tokens, from raw logits to what answers carry."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from outrider_kernels.logprobs import log_probabilities
from outrider_wire.generation import Alternative, TokenLogprobs


def token_logprobs(logits: torch.Tensor, chosen: npt.NDArray[np.int64], top: int) -> tuple[TokenLogprobs, ...]:
    """One entry for each of M positions.

    Args:
        logits: [M, V] raw.
        chosen: [M] ids.
        top: likeliest ids wanted for each.
    """
    if not len(chosen):
        return ()
    given = log_probabilities(logits, chosen, top)
    columns = (chosen, given.chosen, given.top_ids, given.top, given.ranks)
    return tuple(
        TokenLogprobs(token, logprob, tuple(map(Alternative, ids, values)), rank)
        for token, logprob, ids, values, rank in zip(*(column.tolist() for column in columns), strict=True)
    )
