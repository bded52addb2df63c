"""Replaces the linear modules of a model by ones whose rows do not depend on how many rows there are."""

from __future__ import annotations

import torch
from torch import nn
from transformers import PreTrainedModel
from transformers.pytorch_utils import Conv1D

from outrider_kernels.exact_linear import ExactLinear
from outrider_kernels.row_padding import RowPadding, find_row_padding


def make_linears_exact(model: PreTrainedModel) -> RowPadding | None:
    """Replace every linear of `model`, output head included; weights shared between modules stay shared.

    Returns:
        The row padding that makes this machine's matrix products exact for the shapes of `model`, its dtype and the
        current number of threads; None if there is none: then linears are kernels of our own, which need none.
    """
    linears = [module for module in model.modules() if isinstance(module, nn.Linear | Conv1D)]
    shapes = sorted({_shape(linear) for linear in linears})
    padding = find_row_padding(shapes, model.dtype, torch.get_num_threads())
    for parent in list(model.modules()):
        for name, module in list(parent.named_children()):
            if isinstance(module, nn.Linear | Conv1D):
                setattr(parent, name, _exact(module, padding))
    return padding


def _shape(linear: nn.Linear | Conv1D) -> tuple[int, int]:
    """[N, K]: outputs and inputs."""
    weight = linear.weight
    return (weight.shape[1], weight.shape[0]) if isinstance(linear, Conv1D) else (weight.shape[0], weight.shape[1])


def _exact(linear: nn.Linear | Conv1D, padding: RowPadding | None) -> ExactLinear:
    weight = linear.weight
    assert isinstance(weight, nn.Parameter)
    if isinstance(linear, Conv1D):  # GPT-2 keeps its weights transposed
        weight = nn.Parameter(weight.T.contiguous(), requires_grad=False)
    return ExactLinear(weight, linear.bias, padding)
