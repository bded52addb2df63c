"""Verification of a step: the target's own token at every position, compared with the proposals, row by row.

A row whose logits are not numbers fails alone; the rows beside it are verified as if it were not there. Logits after a
proposal say nothing about the text before it: where only those are not numbers, the row ends with that proposal, if it
comes so far. What follows it is computed again in the next step, and fails there as it would have without drafts.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from outrider_kernels.verify import BadLogits, find_bad_rows, find_exhausted_rows
from outrider_runtime.errors import EngineFailed, OutriderError
from outrider_target.acceptance_rule import AcceptanceRule
from outrider_target.batch import Step, StepLogits, verify_rows
from outrider_target.dead_end import dead_end
from outrider_target.emission import Emission
from outrider_target.rule_kernels import verify_by_rule

_NOT_NUMBERS = "the model gave logits that are not numbers for this request"


@dataclass(frozen=True, slots=True)
class Failure:
    """A row that cannot go on, and why."""

    row: int
    error: OutriderError


@dataclass(frozen=True, slots=True)
class Verified:
    """Emissions of the sampling rows of a step, and the rows that failed."""

    emissions: tuple[Emission, ...] = ()
    failures: tuple[Failure, ...] = ()


def verify_step(step: Step, logits: StepLogits, rule: AcceptanceRule) -> Verified:
    """Verify all sampling rows of a step. A row whose prompt has logits that are not numbers fails too.

    Args:
        step: rows and their proposals.
        logits: float32, those of `ragged_batch(step)`.
        rule: by which proposals are accepted.
    """
    broken = [index for index, of_prompt in logits.prompts.items() if _is_broken(of_prompt)]
    verified = _verify_sampling(step, logits.sampling, rule)
    if not broken:
        return verified
    emissions = tuple(emission for emission in verified.emissions if emission.row not in broken)
    failures = [failure for failure in verified.failures if failure.row not in broken]
    return Verified(emissions, (*failures, *(Failure(row, EngineFailed(_NOT_NUMBERS)) for row in broken)))


def note_prompts(step: Step, logits: StepLogits) -> None:
    """Work out the log-probabilities of prompts. Comes before computed ids are counted."""
    for index, of_prompt in logits.prompts.items():
        collected = step.rows[index].sequence.prompt_logprobs
        assert collected is not None, "only prompts that ask for log-probabilities have logits of their own"
        if not _is_broken(of_prompt):
            collected.add(of_prompt)


def _is_broken(logits: torch.Tensor) -> bool:
    return len(_bad_logit_rows(logits)) > 0


def _bad_logit_rows(logits: torch.Tensor) -> list[int]:
    bad: list[int] = find_bad_rows(logits, np.arange(len(logits) + 1, dtype=np.int32)).tolist()
    return bad


def _verify_sampling(step: Step, logits: torch.Tensor, rule: AcceptanceRule) -> Verified:
    indices = step.sampling_rows
    if not indices:
        return Verified()
    try:
        return _verify(step, logits, indices, rule, {})
    except BadLogits:  # looked for once, by the rule: on a GPU whoever looks before it waits for the forward pass
        pass
    starts = verify_rows(step, indices).logit_starts
    limits = _limits(starts, _bad_logit_rows(logits))
    good = [row for row in range(len(indices)) if limits.get(row) != 0]
    good_logits = _finite_logits(logits, starts, good, limits)
    good_limits = {at: limits[row] for at, row in enumerate(good) if row in limits}
    verified = _verify(step, good_logits, [indices[row] for row in good], rule, good_limits)
    failures = [Failure(indices[row], EngineFailed(_NOT_NUMBERS)) for row, limit in limits.items() if limit == 0]
    return Verified(verified.emissions, (*verified.failures, *failures))


def _limits(starts: npt.NDArray[np.int32], bad: SequenceOf[int]) -> dict[int, int]:
    """For rows with bad logits: how many ids can be emitted before the first of them."""
    limits: dict[int, int] = {}
    for at in bad:
        row = int(np.searchsorted(starts, at, side="right")) - 1
        limits.setdefault(row, at - int(starts[row]))
    return limits


def _finite_logits(
    logits: torch.Tensor, starts: npt.NDArray[np.int32], rows: SequenceOf[int], limits: Mapping[int, int]
) -> torch.Tensor:
    """Logits of `rows`, with zeros from each row's limit on.

    Zeros are a distribution as good as any: what comes before the limit has its law by every rule, whatever the target
    says afterwards. Leaving out the proposals from there on would not do: that is a choice by their values.
    """
    places = torch.tensor([at for row in rows for at in range(starts[row], starts[row + 1])], dtype=torch.int64)
    kept = logits[places]
    start = 0
    for row in rows:
        end = start + int(starts[row + 1] - starts[row])
        kept[start + limits.get(row, end - start) : end] = 0
        start = end
    return kept


def _verify(
    step: Step, logits: torch.Tensor, indices: SequenceOf[int], rule: AcceptanceRule, limits: Mapping[int, int]
) -> Verified:
    """Verify rows with finite logits, of which some may emit so many ids and no more.

    A row that comes to a position with nothing to choose keeps what it accepted before: decoded one by one, these ids
    would have been shown too, and perhaps have ended the answer. It fails where it finds nothing at once.
    """
    if not indices:
        return Verified()
    rows = verify_rows(step, indices)
    result = verify_by_rule(rule, step, indices, rows, logits)
    exhausted = set(find_exhausted_rows(rows, result).tolist())
    emissions, failures = [], []
    for row, index in enumerate(indices):
        start, accepted = int(rows.logit_starts[row]), int(result.accepted_counts[row])
        emitted = accepted if row in exhausted else accepted + 1
        if row in limits:
            accepted, emitted = min(accepted, limits[row]), min(emitted, limits[row])
        span = slice(start, start + emitted)
        wants_logprobs = step.rows[index].sequence.sampling.logprobs is not None
        ids = tuple(result.emitted[span].tolist())
        if ids:
            emissions.append(Emission(index, accepted, ids, logits[span] if wants_logprobs else None))
        else:
            sequence = step.rows[index].sequence
            failures.append(Failure(index, dead_end(sequence.sampling, sequence.constraint)))
    return Verified(tuple(emissions), tuple(failures))
