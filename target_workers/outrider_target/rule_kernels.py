"""The kernel of each acceptance rule, applied to rows of a step."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence as SequenceOf

import numpy as np
import torch

from outrider_kernels.contracts import SamplingRows, VerifyResult, VerifyRows
from outrider_kernels.draft_rows import DraftRows
from outrider_kernels.logits_rows import LogitsRows
from outrider_kernels.ratio_verify import verify_by_ratio
from outrider_kernels.synthetic_verify import verify_synthetic
from outrider_kernels.verify import verify
from outrider_kernels.warming import warm_up_ratio, warm_up_synthetic
from outrider_target.acceptance_rule import RATIO_METHODS, AcceptanceRule
from outrider_target.batch import Step, draft_rows, logits_rows, sampling_rows
from outrider_wire.generation import RejectionSampleMethod


def verify_by_rule(
    rule: AcceptanceRule, step: Step, indices: SequenceOf[int], rows: VerifyRows, logits: torch.Tensor
) -> VerifyResult:
    """Verify the rows of a step named by `indices`.

    Args:
        rule: by which proposals are accepted.
        step: rows and their proposals.
        indices: sampling rows of the step.
        rows: their proposals.
        logits: [N, V] float32 of these rows, without bad ones.
    """
    changes = logits_rows(step, indices)
    return apply_rule(rule, logits, rows, sampling_rows(step, indices), lambda: draft_rows(step, indices), changes)


def apply_rule(
    rule: AcceptanceRule,
    logits: torch.Tensor,
    rows: VerifyRows,
    sampling: SamplingRows,
    draft: Callable[[], DraftRows],
    changes: LogitsRows,
) -> VerifyResult:
    """The same for arrays; `draft` gives the laws of proposed ids to the rules that need them."""
    match rule.method:
        case RejectionSampleMethod.COUPLED | RejectionSampleMethod.STRICT:
            return verify(logits, rows, sampling, changes)
        case RejectionSampleMethod.PROBABILISTIC:
            return verify_by_ratio(logits, rows, sampling, draft(), changes)
        case RejectionSampleMethod.BLOCK:
            return verify_by_ratio(logits, rows, sampling, draft(), changes, block=True)
        case RejectionSampleMethod.SYNTHETIC:
            return verify_synthetic(logits, rows, sampling, np.array(rule.synthetic_rates), changes)


def warm_up_rule(rule: AcceptanceRule) -> None:
    """Compile what a rule needs besides the kernels that every target warms up."""
    if rule.method in RATIO_METHODS:
        warm_up_ratio()
    elif rule.method is RejectionSampleMethod.SYNTHETIC:
        warm_up_synthetic()
