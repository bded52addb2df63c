"""The target's laws of all positions of a step on a GPU, as dense masses. No row is sorted.

`scan`, `plan`, `add_up` and `gather` are those of `verification`; then the cut of each row is found among its
candidates, and all masses above it are written (`laws_triton`). Rows without top-k and top-p need no candidates.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from outrider_kernels.contracts import SamplingRows, VerifyRows
from outrider_kernels.mass import LOWEST_EXPONENT
from outrider_kernels.triton_twins.launches import (
    Launch,
    Plan,
    add_up_masses,
    blocks_of,
    gather_candidates,
    launch_of,
    plan_rows,
    power_of_two,
    scan_rows,
)
from outrider_kernels.triton_twins.registry import LAUNCH_OPTIONS
from outrider_kernels.triton_twins.settings import row_settings
from outrider_kernels.triton_twins.tables import Edits, Kind, Laws, Setting
from outrider_kernels.triton_twins.tiling import Tiling


class FoundLaws(NamedTuple):
    """Laws of N positions, each as if all proposals before it were accepted."""

    laws: Laws
    flags: torch.Tensor
    """[N, parts] int32 as in `tables.Parts`; a bad position has a law without mass."""


def law_settings(rows: VerifyRows, sampling: SamplingRows, vocab_size: int) -> npt.NDArray[np.int64]:
    """[N, 8] settings of logit rows; only those with a cut to find count as filtered, and ids without mass as cut."""
    settings = row_settings(rows, sampling, vocab_size)
    log_min_p, top_p = (settings[:, column].view(np.float64) for column in (Setting.LOG_MIN_P, Setting.TOP_P))
    settings[:, Setting.LOG_MIN_P] = np.maximum(log_min_p, LOWEST_EXPONENT).view(np.int64)
    is_cut = (settings[:, Setting.TOP_K] > 0) | (top_p < 1)
    kind = settings[:, Setting.KIND]
    settings[:, Setting.KIND] = np.where(kind == Kind.GREEDY, kind, np.where(is_cut, Kind.FILTERED, Kind.DRAWN))
    return settings


def find_laws(logits: torch.Tensor, settings: npt.NDArray[np.int64], edits: Edits | None, tiling: Tiling) -> FoundLaws:
    """Laws of logits [N, V]; `settings` are `law_settings`."""
    launch = launch_of(logits, settings, edits, tiling)
    scan_rows(launch)
    plan = plan_rows(launch)
    if (settings[:, Setting.KIND] == Kind.FILTERED).any():
        add_up_masses(launch, plan)
        gather_candidates(launch, plan)
    return FoundLaws(_fill_laws(launch, plan, _find_cuts(launch, plan)), launch.parts.flags)


def _find_cuts(launch: Launch, plan: Plan) -> torch.Tensor:
    """[N] int64 the lowest rank that has a mass."""
    from outrider_kernels.triton_twins.laws_triton import find_cuts

    cuts = torch.empty(len(launch.settings), dtype=torch.int64, device=launch.settings.device)
    find_cuts[(len(cuts),)](
        launch.table,
        launch.edits,
        launch.settings,
        plan.candidates,
        launch.parts.num_parts,
        plan.tokens,
        cuts,
        BLOCK=launch.tiling.block,
        PARTS=power_of_two(launch.parts.num_parts),
        ROOM=launch.tiling.room,
        EDITED=launch.edited,
        num_warps=8,
        **LAUNCH_OPTIONS,
    )
    return cuts


def _fill_laws(launch: Launch, plan: Plan, cuts: torch.Tensor) -> Laws:
    from outrider_kernels.triton_twins.laws_triton import fill_laws

    num_parts, size = launch.parts.num_parts, launch.table.size
    masses = torch.zeros(len(cuts), size, dtype=torch.int64, device=cuts.device)
    part_totals = torch.empty(len(cuts), num_parts, dtype=torch.int64, device=cuts.device)
    fill_laws[(len(cuts), num_parts)](
        launch.table,
        launch.edits,
        launch.settings,
        plan.candidates,
        cuts,
        masses,
        part_totals,
        blocks_of(launch.num_blocks, num_parts),
        BLOCK=launch.tiling.block,
        EDITED=launch.edited,
        **LAUNCH_OPTIONS,
    )
    return Laws(masses, part_totals.sum(1), size)
