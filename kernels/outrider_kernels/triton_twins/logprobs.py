"""Log-probabilities of logits that live on a GPU: the contract of `outrider_kernels.logprobs`, with kernels in Triton.

The sum of exponentials is one of whole numbers (`outrider_kernels.mass`), so that no bit of the result depends on how a
row was cut or on the rows beside it. The result differs from `log_softmax` in its last bits: by 2.4e-7 at most for what
the masses leave out at a vocabulary of 262144, and by the rounding to float32.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import torch

from outrider_kernels.logprobs import Logprobs
from outrider_kernels.triton_twins.devices import check_device, on_device, processors_of, to_device
from outrider_kernels.triton_twins.launches import (
    Launch,
    Plan,
    add_up_masses,
    launch_of,
    plan_rows,
    power_of_two,
    scan_rows,
)
from outrider_kernels.triton_twins.registry import LAUNCH_OPTIONS
from outrider_kernels.triton_twins.tables import Kind, Setting
from outrider_kernels.triton_twins.tiling import Tiling


def log_probabilities_on_gpu(
    logits: torch.Tensor, chosen: npt.NDArray[np.int64], top: int, tiling: Tiling | None = None
) -> Logprobs:
    """`outrider_kernels.logprobs.log_probabilities`, for logits on a GPU. `tiling` changes no bit.

    Raises:
        ValueError: the logits are not on a GPU.
        RuntimeError: triton is missing.
    """
    check_device(logits)
    top = min(top, logits.shape[1])
    if len(logits) == 0:
        none, no_top = np.zeros(0, np.int64), np.zeros((0, top), np.int32)
        return Logprobs(none.astype(np.float32), none, no_top, no_top.astype(np.float32))
    with on_device(logits):
        launch = launch_of(logits, _settings(len(logits)), None, tiling or Tiling(processors=processors_of(logits)))
        scan_rows(launch)
        plan = plan_rows(launch)
        add_up_masses(launch, plan)
        chosen_ids = to_device(chosen.astype(np.int32), logits.device)
        return _logprobs(launch, plan, chosen_ids, _ranks(launch, plan, chosen_ids), top)


def _settings(num_rows: int) -> npt.NDArray[np.int64]:
    """Temperature 1, and the one filter that asks for the mass of everything."""
    settings = np.zeros((num_rows, len(Setting)), np.int64)
    for column, value in ((Setting.INVERSE, 1.0), (Setting.TOP_P, 0.5), (Setting.LOG_MIN_P, -math.inf)):
        settings[:, column] = np.float64(value).view(np.int64)
    settings[:, Setting.KIND] = Kind.FILTERED
    return settings


def _ranks(launch: Launch, plan: Plan, chosen: torch.Tensor) -> npt.NDArray[np.int64]:
    from outrider_kernels.triton_twins.logprobs_triton import count_likelier

    num_parts, block = launch.parts.num_parts, launch.tiling.block
    likelier = torch.empty(len(chosen), num_parts, dtype=torch.int32, device=chosen.device)
    count_likelier[(len(chosen), num_parts)](
        launch.table,
        plan.candidates,
        chosen,
        likelier,
        -(-launch.table.size // (block * num_parts)),
        PARTS=power_of_two(num_parts),
        BLOCK=block,
        **LAUNCH_OPTIONS,
    )
    return likelier.sum(1).cpu().numpy().astype(np.int64) + 1


def _logprobs(launch: Launch, plan: Plan, chosen: torch.Tensor, ranks: npt.NDArray[np.int64], top: int) -> Logprobs:
    from outrider_kernels.triton_twins.logprobs_triton import top_logprobs

    count, device = len(chosen), launch.settings.device
    chosen_logprobs = torch.empty(count, dtype=torch.float32, device=device)
    top_ids = torch.empty(count, top, dtype=torch.int32, device=device)
    top_values = torch.empty(count, top, dtype=torch.float32, device=device)
    top_logprobs[(count,)](
        launch.table,
        launch.parts,
        plan.candidates,
        chosen,
        chosen_logprobs,
        top_ids,
        top_values,
        top,
        PARTS=power_of_two(launch.parts.num_parts),
        SPANS=power_of_two(launch.parts.num_spans),
        SPAN=launch.span,
        num_warps=8,
        **LAUNCH_OPTIONS,
    )
    return Logprobs(chosen_logprobs.cpu().numpy(), ranks, top_ids.cpu().numpy(), top_values.cpu().numpy())
