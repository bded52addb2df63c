"""The ratio test and block verification on CPUs, row by row. Gives exactly the ids of `ratio_reference`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import prange

from outrider_kernels.compiling import compiled
from outrider_kernels.contracts import SamplingRows, VerifyRows
from outrider_kernels.draft_rows import DraftRows
from outrider_kernels.draws_numba import below, unit
from outrider_kernels.logits_rows import LogitsRows
from outrider_kernels.sampled_row_numba import SampledRow, coin_bits, emit, law_after, sampled_row
from outrider_kernels.token_law_numba import place_of, total_of

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int32]

_NO_MASS = np.int64(0)
_MOST_MASS = 2.0**62


class _Stop(NamedTuple):
    """Where a row stops; its law is filled in there."""

    accepted: int
    survival: float
    """p_j of the contract, for what the rest is made of."""
    listed: int
    """Ids that the law lists."""


@compiled(parallel=True)
def verify_ratio_rows(
    logits: Floats,
    rows: VerifyRows,
    sampling: SamplingRows,
    changes: LogitsRows,
    draft: DraftRows,
    block: bool,
    accepted_counts: Ints,
    emitted: Ints,
) -> None:
    """Fill `accepted_counts` [B] and, as far as used, `emitted` [N]. Arguments as in the contract, all in range."""
    for index in prange(accepted_counts.shape[0]):
        start = int(rows.logit_starts[index])
        row = sampled_row(logits, rows, sampling, changes, index)
        first = start - index
        stop = _block_stop(row, draft, first) if block else _ratio_stop(row, draft, first)
        accepted = stop.accepted
        if stop.listed > 0 and accepted < row.proposed.shape[0]:
            _subtract(row, draft, first + accepted, accepted, stop)
        emit(row, accepted, stop.listed, emitted[start:])
        accepted_counts[index] = accepted


@compiled()
def _ratio_stop(row: SampledRow, draft: DraftRows, first: int) -> _Stop:
    """The first place whose test fails. `first`: which law is that of the row's first proposed id."""
    for step in range(row.proposed.shape[0]):
        count = law_after(row, step)
        if count == 0:
            return _Stop(step, 1.0, 0)
        drawn = _draft_mass(draft, first + step, row.proposed[step], total_of(row.law, count))
        if below(coin_bits(row, step), drawn) >= _mass(row, row.proposed[step], count):
            return _Stop(step, 1.0, count)
    return _Stop(row.proposed.shape[0], 1.0, law_after(row, row.proposed.shape[0]))


@compiled()
def _block_stop(row: SampledRow, draft: DraftRows, first: int) -> _Stop:
    """The largest place whose own test succeeds."""
    accepted, kept_survival, survival = 0, 1.0, 1.0
    for step in range(row.proposed.shape[0] + 1):
        count = law_after(row, step)
        is_last = count == 0 or step == row.proposed.shape[0]
        if step > 0:
            chance = survival if is_last else _chance(row, draft, first + step, step, survival, count)
            if unit(coin_bits(row, step - 1)) < chance:
                accepted, kept_survival = step, survival
        if is_last:
            break
        token = row.proposed[step]
        drawn = np.float64(_draft_mass(draft, first + step, token, total_of(row.law, count)))
        survival = min(survival * (np.float64(_mass(row, token, count)) / drawn), 1.0)
    return _Stop(accepted, kept_survival, count if accepted == step else law_after(row, accepted))


@compiled()
def _chance(row: SampledRow, draft: DraftRows, law: int, step: int, survival: float, count: int) -> float:
    """h_j of the contract for j = step < k; the row's law is that of the next id."""
    if survival >= 1.0:
        return 1.0
    total = total_of(row.law, count)
    unlisted, excess = total, _NO_MASS
    start, end = draft.starts[law], draft.starts[law + 1]
    for j in range(max(end - start, 1)):
        token = row.proposed[step] if start == end else draft.ids[start + j]
        mass = _mass(row, token, count)
        drawn = np.float64(_draft_mass(draft, law, token, total))
        unlisted -= mass
        excess += np.int64(max(survival * np.float64(mass) - drawn, 0.0))
    rest = (survival * np.float64(unlisted) + np.float64(excess)) / np.float64(total)
    return rest / (rest + (1.0 - survival))


@compiled()
def _subtract(row: SampledRow, draft: DraftRows, law: int, step: int, stop: _Stop) -> None:
    """Leave the rest of the row's law, unless nothing would be left."""
    total = total_of(row.law, stop.listed)
    weights = row.law.kept.weights
    before = weights[: stop.listed].copy()
    start, end = draft.starts[law], draft.starts[law + 1]
    for j in range(max(end - start, 1)):
        token = row.proposed[step] if start == end else draft.ids[start + j]
        place = place_of(token, row.law, stop.listed)
        if place < stop.listed:
            drawn = _draft_mass(draft, law, token, total)
            if stop.survival < 1.0:
                drawn = np.int64(min(np.float64(drawn) / stop.survival, _MOST_MASS))
            weights[place] = max(weights[place] - drawn, _NO_MASS)
    if total_of(row.law, stop.listed) == 0:
        weights[: stop.listed] = before


@compiled()
def _mass(row: SampledRow, token: int, count: int) -> np.int64:
    """m(token) of the contract."""
    place = place_of(token, row.law, count)
    return row.law.kept.weights[place] if place < count else _NO_MASS


@compiled()
def _draft_mass(draft: DraftRows, law: int, token: int, total: np.int64) -> np.int64:
    """d(token) of the contract, for an id that the law lists or the one that was certain."""
    start, end = draft.starts[law], draft.starts[law + 1]
    if start == end:
        return total
    weights = np.float64(draft.weights[start:end].sum())
    for j in range(start, end):
        if draft.ids[j] == token:
            return np.int64(np.float64(draft.weights[j]) * np.float64(total) / weights)
    return _NO_MASS
