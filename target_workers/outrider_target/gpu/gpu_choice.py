"""The forward pass on a GPU: the lean decoder or none, for nothing else is exact there."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import NamedTuple

import torch

from outrider_kernels.triton_twins.rotary_triton import RotaryTables
from outrider_runtime.errors import InvalidConfig
from outrider_runtime.models.loading import ModelDtype
from outrider_target.decoder_parameters import take_parameters
from outrider_target.decoder_structure import check_structure, rotary_of
from outrider_target.forward import Forward
from outrider_target.forward_building import agreeing, built, surveyed_model
from outrider_target.gpu.gpu_forward import GpuForward
from outrider_target.gpu.gpu_weights import GpuWeights
from outrider_target.gpu.recorded_steps import CudaRecorder, Recorder
from outrider_target.parallel.group_ranks import join_group
from outrider_target.parallel.meeting import START_TIMEOUT_S
from outrider_target.parallel.ranks import ONE_RANK, Ranks
from outrider_target.parallel.socket_ranks import SocketRanks
from outrider_target.parallel.stepping import follow
from outrider_target.transformers_forward import SurveyedModel


class OnGpu(NamedTuple):
    """A forward pass, and what it is."""

    forward: Forward
    description: str


def choose_on_gpu(folder: Path, dtype: ModelDtype, max_model_len: int, ranks: Ranks) -> OnGpu:
    """`choose_forward` for a GPU.

    Raises:
        ModelRefused: a model that we do not load, or that the lean decoder does not serve.
        InvalidConfig: torch finds no GPU.
        RanksLost: another rank is gone.
    """
    device = _gpu()
    surveyed = surveyed_model(folder, dtype, max_model_len, ranks)
    forward = agreeing(_part(surveyed, max_model_len, device, ranks), surveyed, ranks)
    return OnGpu(forward, f"lean decoder on {torch.cuda.get_device_name(device)}")


def follow_on_gpu(folder: Path, dtype: ModelDtype, max_model_len: int, ranks: Ranks) -> None:
    """`follow_choice` for a GPU.

    Raises:
        ModelRefused: as on rank 0, for the same reason.
        InvalidConfig: torch finds no GPU.
        RanksLost: another rank is gone.
    """
    device = _gpu()
    surveyed = surveyed_model(folder, dtype, max_model_len, ranks)
    follow(_part(surveyed, max_model_len, device, ranks), ranks)


def gpu_forward(
    surveyed: SurveyedModel,
    max_model_len: int,
    device: torch.device,
    recorder: Recorder,
    ranks: Ranks = ONE_RANK,
) -> GpuForward:
    """Move a model to a device. It is left without weights.

    Args:
        surveyed: the model, or this rank's part of it.
        max_model_len: tokens of one sequence at most.
        device: a GPU; host memory where kernels are interpreted.
        recorder: records steps there.
        ranks: that hold the other parts, and exchange what lies on their devices.

    Raises:
        ModelRefused: naming what the lean decoder cannot do.
    """
    check_structure(surveyed.model)
    rotary = rotary_of(surveyed.model, max_model_len, surveyed.layers[0].head_dim)
    weights = GpuWeights.of(take_parameters(surveyed.model), device)
    tables = RotaryTables(*(torch.from_numpy(table).to(device) for table in rotary))
    return GpuForward(weights, surveyed.layers, tables, recorder, ranks)


def _gpu() -> torch.device:
    """The only one that Ray shows this process."""
    if not torch.cuda.is_available():
        raise InvalidConfig(f"target.device: cuda, but torch {torch.__version__} finds no GPU; allowed here: cpu")
    return torch.device("cuda", 0)


def _part(surveyed: SurveyedModel, max_model_len: int, device: torch.device, ranks: Ranks) -> GpuForward:
    on_devices = join_group(ranks, "nccl", START_TIMEOUT_S) if isinstance(ranks, SocketRanks) else ranks
    build = partial(
        gpu_forward, max_model_len=max_model_len, device=device, recorder=CudaRecorder(device), ranks=on_devices
    )
    return built(build, surveyed, ranks)
