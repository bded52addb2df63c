"""Every rule of acceptance by its twin for GPUs and by its form for CPUs, on the same batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from gpu_shapes import Batch
from outrider_kernels.contracts import VerifyResult
from outrider_kernels.draft_rows import DraftRows
from outrider_kernels.ratio_verify import verify_by_ratio
from outrider_kernels.synthetic_verify import verify_synthetic
from outrider_kernels.triton_twins.ratio import verify_by_ratio_on_gpu
from outrider_kernels.triton_twins.synthetic import verify_synthetic_on_gpu
from outrider_kernels.triton_twins.verification import verify_on_gpu
from outrider_kernels.verify import verify

LISTED_IDS = 32
"""In a drafter's law."""
_RATES = np.full(8, 0.8)


class Rule(NamedTuple):
    """One rule. Both forms take the logits where they lie."""

    name: str
    on_gpu: Callable[[Batch], VerifyResult]
    on_cpu: Callable[[Batch], VerifyResult]


def draft_of(given: Batch) -> DraftRows:
    """A law for each proposed id, which lists it before others."""
    vocab_size, count = given.logits.shape[1], len(given.rows.proposed)
    listed = min(LISTED_IDS, vocab_size)
    ids = (given.rows.proposed[:, None] + np.arange(listed)[None] * (vocab_size // listed)) % vocab_size
    weights = np.broadcast_to(2 ** np.arange(listed - 1, -1, -1, dtype=np.int64), ids.shape)
    return DraftRows(np.arange(count + 1, dtype=np.int32) * listed, ids.ravel().astype(np.int32), weights.ravel())


def _by_ratio(block: bool, on_gpu: bool) -> Callable[[Batch], VerifyResult]:
    form = verify_by_ratio_on_gpu if on_gpu else verify_by_ratio
    return lambda given: form(*given, draft_of(given), block=block)


COUPLED = Rule("coupled", lambda given: verify_on_gpu(*given), lambda given: verify(*given))
RULES = (
    COUPLED,
    Rule("ratio", _by_ratio(block=False, on_gpu=True), _by_ratio(block=False, on_gpu=False)),
    Rule("block", _by_ratio(block=True, on_gpu=True), _by_ratio(block=True, on_gpu=False)),
    Rule(
        "synthetic",
        lambda given: verify_synthetic_on_gpu(*given, _RATES),
        lambda given: verify_synthetic(*given, _RATES),
    ),
)


def differing_ids(rule: Rule, given: Batch) -> int:
    """How many counts and ids of the GPU's form differ from the CPU's."""
    ours, theirs = rule.on_gpu(given), rule.on_cpu(given._replace(logits=given.logits.cpu()))
    return sum(int((one != other).sum()) for one, other in zip(ours, theirs, strict=True))
