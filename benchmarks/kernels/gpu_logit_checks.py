"""Kernels over logits and ids that no table of times names, held against the CPU's forms.

Every check counts numbers that differ, on any device: on a CPU with interpreted kernels, which is how tests run it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from gpu_rules import draft_of
from gpu_shapes import FILTERINGS, Batch, Shape, batch
from outrider_kernels.bad_rows import find_bad_rows
from outrider_kernels.logits_rows import LogitsRows, RowChange, stack_changes
from outrider_kernels.logprobs import log_probabilities
from outrider_kernels.ngram_lookup import look_up_reference
from outrider_kernels.noise import gumbel, hash_ids, row_key
from outrider_kernels.ratio_verify import verify_by_ratio
from outrider_kernels.triton_twins.bad_rows import find_bad_rows_on_gpu
from outrider_kernels.triton_twins.logprobs import log_probabilities_on_gpu
from outrider_kernels.triton_twins.ratio import verify_by_ratio_on_gpu
from outrider_kernels.triton_twins.verification import verify_on_gpu
from outrider_kernels.verify import verify

_NOISE_ERROR = 1e-13
"""Of noise in float64, whose logarithms differ between libraries in the last bits."""
_LOGPROB_ERROR = 4e-6
"""Of float32 numbers down to -40."""
_DEPTH = 2


class Check(NamedTuple):
    """One comparison."""

    name: str
    differing: Callable[[], int]
    """How many numbers differ from what they should be."""


def logit_checks(rows: int, vocab_size: int, dtype: torch.dtype, device: str) -> Iterator[Check]:
    """Checks of so many rows, 6 at least, over a vocabulary of 100 ids at least."""
    yield Check(f"noise of {vocab_size} ids", partial(_differing_noise, vocab_size, device))
    for filtering in (FILTERINGS[0], FILTERINGS[1], FILTERINGS[4]):
        given = batch(Shape(rows, _DEPTH, vocab_size, dtype), filtering, device)
        name = f"{vocab_size} ids, {str(dtype).removeprefix('torch.')}, {filtering.name}"
        yield Check(f"penalties, bias and masks: {name}", partial(_differing_edits, given))
    yield Check(f"the same by ratio: {name}", partial(_differing_ratio_edits, given))
    yield Check(f"bad rows: {name}", partial(_differing_bad_rows, given))
    yield Check(f"log-probabilities: {name}", partial(_differing_logprobs, given))
    yield Check("n-gram lookup", partial(_differing_lookups, device))


def unequal(ours: object, theirs: object) -> int:
    """Entries that are not the same number; NaN is the same as NaN."""
    one, other = (torch.as_tensor(values).cpu() for values in (ours, theirs))
    same = (one == other) | ((one != one) & (other != other))
    return int((~same).sum())


def _differing_noise(vocab_size: int, device: str) -> int:
    from outrider_kernels.triton_twins.noise_triton import noise_of_ids

    ids, block, differing = np.arange(vocab_size, dtype=np.uint32), 1024, 0
    for seed, position in ((0, 0), (2**64 - 1, 2**31 - 1), (12345, 2**40)):
        hashes = torch.empty(vocab_size, dtype=torch.int32, device=device)
        noises = torch.empty(vocab_size, dtype=torch.float64, device=device)
        seeds = torch.tensor([seed], dtype=torch.uint64).to(device)
        table = torch.from_numpy(ids.view(np.int32)).to(device)
        grid = (-(-vocab_size // block),)
        noise_of_ids[grid](seeds, torch.tensor([position]).to(device), table, hashes, noises, vocab_size, block)
        expected = hash_ids(row_key(seed, position), ids)
        differing += unequal(hashes, expected.view(np.int32))
        differing += int((np.abs(noises.cpu().numpy() - gumbel(expected)) > _NOISE_ERROR).sum())
    return differing


def _changes(given: Batch) -> LogitsRows:
    """Every kind of change, about ids that are proposed; every sixth row changes nothing."""
    vocab_size, changes = given.logits.shape[1], list[RowChange | None]()
    for row, proposed in enumerate(given.rows.proposed.reshape(-1, _DEPTH)):
        ids = np.unique(proposed)
        ones = np.full((_DEPTH + 1, -(-vocab_size // 32)), 0xFFFFFFFF, np.uint32)
        ones[1, proposed[1] // 32] &= ~np.uint32(1 << (int(proposed[1]) % 32))
        changes.append(
            (
                None,
                RowChange(repetition=1.3, presence=0.5, frequency=0.4, seen_ids=ids, seen_counts=ids % 3),
                RowChange(ending_positions=2, ending_ids=ids, bias_ids=ids, bias_values=np.linspace(-3, 3, len(ids))),
                RowChange(allowed_ids=np.union1d(ids[:2], np.arange(0, vocab_size, 7)).astype(np.int32)),
                RowChange(words=(proposed, proposed[::-1]), recent_ids=proposed[:1]),
                # Listed for its bias, and banned all the same.
                RowChange(bias_ids=proposed[1:2], bias_values=np.ones(1), masks=ones),
            )[row % 6]
        )
    return stack_changes(changes)


def _differing_edits(given: Batch) -> int:
    changes = _changes(given)
    ours = verify_on_gpu(*given, changes)
    theirs = verify(given.logits.cpu(), given.rows, given.sampling, changes)
    return sum(unequal(one, other) for one, other in zip(ours, theirs, strict=True))


def _differing_ratio_edits(given: Batch) -> int:
    changes, draft = _changes(given), draft_of(given)
    ours = verify_by_ratio_on_gpu(*given, draft, changes)
    theirs = verify_by_ratio(given.logits.cpu(), given.rows, given.sampling, draft, changes)
    return sum(unequal(one, other) for one, other in zip(ours, theirs, strict=True))


def _differing_bad_rows(given: Batch) -> int:
    logits = given.logits.clone()
    logits[1, 5], logits[4, -1], logits[7], logits[10, :-1] = torch.nan, torch.inf, -torch.inf, -torch.inf
    ours = find_bad_rows_on_gpu(logits, given.rows.logit_starts)
    theirs = find_bad_rows(logits.cpu(), given.rows.logit_starts)
    return len(set(ours.tolist()) ^ set(theirs.tolist()))


def _differing_logprobs(given: Batch) -> int:
    chosen = given.logits.float().argmax(1).cpu().numpy()
    ours, theirs = (form(logits, chosen, 20) for form, logits in _logprob_forms(given))
    far = sum(int((np.abs(one - other) > _LOGPROB_ERROR).sum()) for one, other in _values(ours, theirs))
    return far + unequal(ours.top_ids, theirs.top_ids) + unequal(ours.ranks, theirs.ranks)


def _logprob_forms(given: Batch) -> tuple[tuple[Any, torch.Tensor], ...]:
    return (log_probabilities_on_gpu, given.logits), (log_probabilities, given.logits.cpu())


def _values(ours: Any, theirs: Any) -> tuple[tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]], ...]:
    return (ours.chosen, theirs.chosen), (ours.top, theirs.top)


def _differing_lookups(device: str) -> int:
    from outrider_kernels.triton_twins.ngram_lookup_triton import look_up

    source = torch.Generator().manual_seed(3)
    ids = torch.randint(0, 6, (24, 3000), generator=source, dtype=torch.int32)
    lengths = torch.randint(0, 3001, (24,), generator=source, dtype=torch.int32)
    depths = (torch.arange(24) % 9).int()
    differing = 0
    for bounds in ((1, 1), (2, 5), (3, 3)):
        ours = look_up(ids.to(device), lengths.to(device), depths.to(device), *bounds, 8)
        theirs = look_up_reference(ids, lengths, depths, *bounds, 8)
        differing += sum(unequal(one, other) for one, other in zip(ours, theirs, strict=True))
    return differing
