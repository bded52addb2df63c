"""Weights of Llama-like models as the lean decoder multiplies them: packed, and what shares an input as one matrix.

They are taken out of the model's own modules layer by layer, which are left empty: nothing is held twice but an
embedding that is the output head too, for rows cannot be looked up in a packed matrix.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from transformers import PreTrainedModel

from outrider_kernels.number_formats_numba import Numbers, numbers_of
from outrider_kernels.packed_linear import Product, packed_product
from outrider_kernels.row_padding import RowPadding, find_row_padding


@dataclass(frozen=True, slots=True)
class LeanLinear:
    """`rows @ weight.T + bias`; rows are padded by the caller."""

    multiply: Product
    num_outputs: int
    """N"""
    num_inputs: int
    """K"""

    @property
    def shape(self) -> tuple[int, int]:
        """N and K."""
        return self.num_outputs, self.num_inputs


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
    vocab_size: int
    """V; the head of one of several ranks has fewer outputs."""

    @classmethod
    def of(cls, model: PreTrainedModel) -> LeanWeights:
        """Take the weights out of a model of Llama's structure, which cannot run any more then."""
        decoder: Any = model.get_decoder()
        head: Any = model.get_output_embeddings()
        return cls(
            embedding=model.get_input_embeddings().weight.detach(),
            layers=tuple(_lean_layer(layer) for layer in decoder.layers),
            final_norm=LeanNorm.of(decoder.norm),
            head=_packed(*_parameters(head)),
            vocab_size=head.out_features,
        )

    def paddings(self) -> LeanPaddings | None:
        """What this machine's products need with the current number of threads; None if one cannot be made exact."""
        layer = self.layers[0]
        kinds = (layer.projection, layer.output, layer.gate_up, layer.down, self.head)
        dtype, num_threads = self.embedding.dtype, torch.get_num_threads()
        found = {
            shape: find_row_padding([shape], dtype, num_threads, packed_product)
            for shape in {kind.shape for kind in kinds}
        }
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


def _fused(linears: Sequence[Any]) -> LeanLinear:
    """One linear for several with the same input, which are left without weights."""
    taken = [_parameters(linear) for linear in linears]
    biases = [parameters.bias for parameters in taken if parameters.bias is not None]
    assert len(biases) in (0, len(linears)), "projections of one input have biases all or none"
    weight = torch.cat([parameters.weight for parameters in taken])
    for linear in linears:
        linear.weight.data = linear.weight.new_empty(0)
    return _packed(weight, torch.cat(biases) if biases else None)


class _Parameters(NamedTuple):
    weight: torch.Tensor
    bias: torch.Tensor | None


def _parameters(linear: Any) -> _Parameters:
    return _Parameters(linear.weight.detach(), None if linear.bias is None else linear.bias.detach())


def _packed(weight: torch.Tensor, bias: torch.Tensor | None) -> LeanLinear:
    return LeanLinear(packed_product(weight, bias), *weight.shape)
