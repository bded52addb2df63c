"""Weights of Llama-like models as the lean decoder multiplies them: what shares an input is one matrix.

The model's own modules keep working: their weights become views of the fused ones, so that nothing is held twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel

from outrider_kernels.exact_linear import RowPadding, find_row_padding
from outrider_kernels.number_formats_numba import Numbers, numbers_of


@dataclass(frozen=True, slots=True)
class LeanLinear:
    """`source @ weight + bias` into memory that is there already."""

    transposed: torch.Tensor
    """[K, N], a view of the weight [N, K]."""
    bias: torch.Tensor | None
    """[N]"""

    def multiply(self, source: torch.Tensor, target: torch.Tensor) -> None:
        """Write `target` [M, N] from `source` [M, K]; M is padded by the caller."""
        if self.bias is None:
            torch.mm(source, self.transposed, out=target)
        else:
            torch.addmm(self.bias, source, self.transposed, out=target)

    @property
    def shape(self) -> tuple[int, int]:
        """N and K."""
        return self.transposed.shape[1], self.transposed.shape[0]


@dataclass(frozen=True, slots=True)
class LeanNorm:
    """A root mean square norm."""

    weight: Numbers
    epsilon: float

    @classmethod
    def of(cls, module: Any) -> LeanNorm:
        """That of transformers' module; its weight is shared."""
        return cls(numbers_of(module.weight.detach()), float(module.variance_epsilon))


@dataclass(frozen=True, slots=True)
class LeanLayer:
    """One decoder layer."""

    input_norm: LeanNorm
    projection: LeanLinear
    """To queries, keys and values."""
    query_norm: LeanNorm | None
    key_norm: LeanNorm | None
    output: LeanLinear
    mlp_norm: LeanNorm
    gate_up: LeanLinear
    down: LeanLinear


@dataclass(frozen=True, slots=True)
class LeanPaddings:
    """Rows to which the inputs of each kind of linear are padded, so that its rows do not depend on their number."""

    projection: RowPadding
    output: RowPadding
    gate_up: RowPadding
    down: RowPadding
    head: RowPadding


@dataclass(frozen=True, slots=True)
class LeanWeights:
    """All weights of a model."""

    embedding: torch.Tensor
    """[V, E]"""
    layers: tuple[LeanLayer, ...]
    final_norm: LeanNorm
    head: LeanLinear

    @classmethod
    def of(cls, model: PreTrainedModel) -> LeanWeights:
        """Fuse the weights of a model of Llama's structure in place."""
        decoder: Any = model.get_decoder()
        return cls(
            embedding=model.get_input_embeddings().weight.detach(),
            layers=tuple(_lean_layer(layer) for layer in decoder.layers),
            final_norm=LeanNorm.of(decoder.norm),
            head=_fused([model.get_output_embeddings()]),
        )

    def paddings(self) -> LeanPaddings | None:
        """What this machine's products need with the current number of threads; None if one cannot be made exact."""
        layer = self.layers[0]
        kinds = (layer.projection, layer.output, layer.gate_up, layer.down, self.head)
        dtype, num_threads = self.embedding.dtype, torch.get_num_threads()
        found = {shape: find_row_padding([shape], dtype, num_threads) for shape in {kind.shape for kind in kinds}}
        paddings = [padding for kind in kinds if (padding := found[kind.shape]) is not None]
        return LeanPaddings(*paddings) if len(paddings) == len(kinds) else None


def _lean_layer(layer: Any) -> LeanLayer:
    attention, mlp = layer.self_attn, layer.mlp
    has_head_norms = hasattr(attention, "q_norm")
    return LeanLayer(
        input_norm=LeanNorm.of(layer.input_layernorm),
        projection=_fused([attention.q_proj, attention.k_proj, attention.v_proj]),
        query_norm=LeanNorm.of(attention.q_norm) if has_head_norms else None,
        key_norm=LeanNorm.of(attention.k_norm) if has_head_norms else None,
        output=_fused([attention.o_proj]),
        mlp_norm=LeanNorm.of(layer.post_attention_layernorm),
        gate_up=_fused([mlp.gate_proj, mlp.up_proj]),
        down=_fused([mlp.down_proj]),
    )


def _fused(linears: Sequence[nn.Linear]) -> LeanLinear:
    """One linear for several with the same input; their parameters become views of its parameters."""
    biases = [linear.bias for linear in linears if linear.bias is not None]
    assert len(biases) in (0, len(linears)), "projections of one input have biases all or none"
    weight = _share([linear.weight for linear in linears])
    return LeanLinear(weight.T, _share(biases) if biases else None)


def _share(parameters: Sequence[torch.Tensor]) -> torch.Tensor:
    """Rows of all parameters, one below the other, in one piece of memory that the parameters then use."""
    if len(parameters) == 1:
        return parameters[0].detach()
    whole = torch.cat([parameter.detach() for parameter in parameters])
    for parameter, part in zip(
        parameters, torch.split(whole, [len(parameter) for parameter in parameters]), strict=True
    ):
        parameter.data = part
    return whole
