"""What the rules that toss coins share on a GPU: laws and rows at the start of a step, tokens and result at its end."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch

from outrider_kernels.arguments import check_arguments, check_changes
from outrider_kernels.contracts import PADDING_ID, SamplingRows, VerifyResult, VerifyRows
from outrider_kernels.logits_rows import LogitsRows
from outrider_kernels.triton_twins.bad_rows import refuse_bad_rows
from outrider_kernels.triton_twins.devices import check_device, processors_of, to_device
from outrider_kernels.triton_twins.editing import edited_logits
from outrider_kernels.triton_twins.launches import power_of_two
from outrider_kernels.triton_twins.laws import FoundLaws, find_laws, law_settings
from outrider_kernels.triton_twins.registry import LAUNCH_OPTIONS
from outrider_kernels.triton_twins.tables import TossRows
from outrider_kernels.triton_twins.tiling import Tiling


class Toss(NamedTuple):
    """A step of B rows under way."""

    found: FoundLaws
    rows: TossRows
    result: torch.Tensor
    """[B + N] int32: accepted counts, for the rule to write, then emitted ids."""
    accepted_counts: torch.Tensor
    """[B] its first part."""
    deepest: int
    """Proposed ids of the deepest row."""


def check_toss(logits: torch.Tensor, rows: VerifyRows, sampling: SamplingRows, changes: LogitsRows) -> None:
    """Check what all these rules are given. Raises ValueError and RuntimeError as `verification` does."""
    check_arguments(logits, rows, sampling)
    check_changes(changes, np.diff(rows.logit_starts), logits.shape[1])
    check_device(logits)


def begin_toss(
    logits: torch.Tensor, rows: VerifyRows, sampling: SamplingRows, changes: LogitsRows, tiling: Tiling | None
) -> Toss:
    """Find the laws of all positions, which are N > 0."""
    device, count = logits.device, len(rows.first_position)
    settings = law_settings(rows, sampling, logits.shape[1])
    starts = to_device(rows.logit_starts.astype(np.int32, copy=False), device)
    proposed = to_device(rows.proposed.astype(np.int32, copy=False), device)
    edits = edited_logits(logits, settings, rows, changes, starts, proposed) if changes.changed.any() else None
    found = find_laws(logits, settings, edits, tiling or Tiling(processors=processors_of(logits)))
    seeds = to_device(sampling.seed.astype(np.uint64, copy=False), device)
    positions = to_device(rows.first_position.astype(np.int64, copy=False), device)
    result = torch.full((count + len(logits),), PADDING_ID, dtype=torch.int32, device=device)
    deepest = int(np.diff(rows.logit_starts).max()) - 1
    return Toss(found, TossRows(starts, proposed, seeds, positions), result, result[:count], deepest)


def end_toss(toss: Toss, rows: VerifyRows) -> VerifyResult:
    """Draw the tokens, and copy the result to the host in one piece.

    Raises:
        ValueError: a row's logits are bad.
    """
    from outrider_kernels.triton_twins.draws_triton import FEWEST_DEPTH, TOKEN_BLOCK, draw_tokens

    count = len(rows.first_position)
    draw_tokens[(count,)](
        toss.found.laws,
        toss.rows,
        toss.accepted_counts,
        toss.result[count:],
        BLOCK=TOKEN_BLOCK,
        DEPTH=max(FEWEST_DEPTH, power_of_two(toss.deepest)),
        **LAUNCH_OPTIONS,
    )
    flags = toss.found.flags
    everything = torch.cat([toss.result, flags.flatten()]).cpu().numpy()
    accepted, emitted, found = np.split(everything, [count, len(toss.result)])
    refuse_bad_rows(found.reshape(flags.shape), rows.logit_starts)
    return VerifyResult(accepted, emitted)
