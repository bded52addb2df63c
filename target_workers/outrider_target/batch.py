"""From planned rows and proposals to the arrays of one step, and back from emitted ids to rows."""

from __future__ import annotations

from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass, field
from itertools import accumulate

import numpy as np
import numpy.typing as npt
import torch

from outrider_kernels.contracts import SamplingRows, VerifyRows
from outrider_kernels.draft_rows import DraftRows
from outrider_kernels.logits_rows import LogitsRows, RowChange, stack_changes
from outrider_target.drafting.speculator import Proposal
from outrider_target.forward import RaggedBatch
from outrider_target.scheduler import Row
from outrider_wire.draft_law import DraftLaw


@dataclass(slots=True)
class Step:
    """One step's rows with their proposals by sequence key. Proposed ids are not committed; they live here only."""

    rows: list[Row]
    proposals: dict[int, Proposal]
    masks: dict[int, npt.NDArray[np.uint32]] = field(default_factory=dict)
    """By row: [positions, ceil(V / 32)] the ids that a prescribed form lets come, as in `LogitsRows`."""

    def proposal(self, index: int) -> Proposal | None:
        """The proposal of a row, if it has one."""
        return self.proposals.get(self.rows[index].sequence.key)

    def proposed(self, index: int) -> tuple[int, ...]:
        """Proposed ids of a row, empty when it has none."""
        proposal = self.proposal(index)
        return () if proposal is None else proposal.token_ids

    def prompt_positions(self, index: int) -> range:
        """Positions of a row whose logits are wanted for log-probabilities of its prompt."""
        row = self.rows[index]
        wanted = row.sequence.prompt_logprobs
        return range(0) if wanted is None else wanted.wanted(row.sequence.computed_tokens, row.chunk)

    @property
    def sampling_rows(self) -> list[int]:
        """Indices of rows out of which a next id comes."""
        return [index for index, row in enumerate(self.rows) if row.samples]

    @property
    def num_tokens(self) -> int:
        """Tokens that go through the forward pass."""
        return sum(row.chunk + len(self.proposed(index)) for index, row in enumerate(self.rows))


def ragged_batch(step: Step) -> RaggedBatch:
    """Arrays for the forward pass.

    Row after row, logits are wanted at the positions that log-probabilities of the prompt need, then for the last
    committed and every proposed id if it is a sampling row.
    """
    token_ids: list[int] = []
    positions: list[npt.NDArray[np.int32]] = []
    starts = [0]
    logit_indices: list[int] = []
    for index, row in enumerate(step.rows):
        sequence, proposed = row.sequence, step.proposed(index)
        first = sequence.computed_tokens
        token_ids += sequence.token_ids[first : first + row.chunk]
        token_ids += proposed
        positions.append(np.arange(first, first + row.chunk + len(proposed), dtype=np.int32))
        starts.append(len(token_ids))
        logit_indices += (starts[-2] + position - first for position in step.prompt_positions(index))
        if row.samples:
            logit_indices += range(starts[-1] - len(proposed) - 1, starts[-1])
    return RaggedBatch(
        token_ids=np.asarray(token_ids, dtype=np.int64),
        positions=np.concatenate(positions),
        row_starts=np.asarray(starts, dtype=np.int32),
        block_tables=_block_tables(step.rows),
        logit_indices=np.asarray(logit_indices, dtype=np.int64),
    )


@dataclass(frozen=True, slots=True)
class StepLogits:
    """The logits of a step by what they are for."""

    sampling: torch.Tensor
    """[N, V] of all sampling rows: one more than each has proposed ids."""
    prompts: dict[int, torch.Tensor]
    """By row: [M, V] at `Step.prompt_positions`; only rows that have any."""


def split_logits(step: Step, logits: torch.Tensor) -> StepLogits:
    """Take apart what the forward pass gives for `ragged_batch(step)`. Copies nothing while no prompt wants any."""
    prompts: dict[int, torch.Tensor] = {}
    sampling: list[torch.Tensor] = []
    at = 0
    for index, row in enumerate(step.rows):
        wanted = len(step.prompt_positions(index))
        if wanted:
            prompts[index] = logits[at : at + wanted]
        at += wanted
        if row.samples:
            sampling.append(logits[at : at + len(step.proposed(index)) + 1])
            at += len(sampling[-1])
    return StepLogits(torch.cat([logits[:0], *sampling]) if prompts else logits, prompts)


def _block_tables(rows: SequenceOf[Row]) -> npt.NDArray[np.int32]:
    tables = np.zeros((len(rows), max(len(row.sequence.blocks) for row in rows)), dtype=np.int32)
    for table, row in zip(tables, rows, strict=True):
        table[: len(row.sequence.blocks)] = row.sequence.blocks
    return tables


def verify_rows(step: Step, indices: SequenceOf[int]) -> VerifyRows:
    """The proposals of the rows named by `indices`, as the verification kernel takes them."""
    proposed = [step.proposed(index) for index in indices]
    return VerifyRows(
        logit_starts=np.asarray(list(accumulate((len(ids) + 1 for ids in proposed), initial=0)), dtype=np.int32),
        proposed=np.asarray([token for ids in proposed for token in ids], dtype=np.int32),
        first_position=np.asarray([step.rows[index].sequence.length for index in indices], dtype=np.int64),
    )


def sampling_rows(step: Step, indices: SequenceOf[int]) -> SamplingRows:
    """Sampling parameters of the rows named by `indices`."""
    sequences = [step.rows[index].sequence for index in indices]
    params = [sequence.sampling for sequence in sequences]
    return SamplingRows(
        temperature=np.asarray([p.temperature for p in params], dtype=np.float64),
        top_k=np.asarray([p.top_k for p in params], dtype=np.int32),
        top_p=np.asarray([p.top_p for p in params], dtype=np.float64),
        min_p=np.asarray([p.min_p for p in params], dtype=np.float64),
        seed=np.asarray([sequence.seed for sequence in sequences], dtype=np.uint64),
    )


def draft_rows(step: Step, indices: SequenceOf[int]) -> DraftRows:
    """The laws that the proposals of the rows named by `indices` were drawn from."""
    laws: list[DraftLaw] = []
    for index in indices:
        proposal = step.proposal(index)
        if proposal is not None:
            laws += proposal.draft_laws or (DraftLaw(),) * len(proposal.token_ids)
    return DraftRows(
        starts=np.asarray(list(accumulate((len(law.token_ids) for law in laws), initial=0)), dtype=np.int32),
        ids=np.asarray([token for law in laws for token in law.token_ids], dtype=np.int32),
        weights=np.asarray([weight for law in laws for weight in law.weights], dtype=np.int64),
    )


def logits_rows(step: Step, indices: SequenceOf[int]) -> LogitsRows:
    """What the rows named by `indices` change about their logits."""
    return stack_changes([_change(step, index) for index in indices])


def _change(step: Step, index: int) -> RowChange | None:
    change, masks = step.rows[index].sequence.change.row(), step.masks.get(index)
    return change if masks is None else (change or RowChange())._replace(masks=masks)
