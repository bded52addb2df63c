"""Weights of Llama-like models as the lean decoder multiplies them: packed, and what shares an input as one matrix.

Nothing is held twice but an embedding that is the output head too, for rows cannot be looked up in a packed matrix.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from transformers import PreTrainedModel

from outrider_kernels.number_formats_numba import Numbers, numbers_of
from outrider_kernels.packed_linear import Product, packed_product
from outrider_kernels.row_padding import RowPadding, find_row_padding
from outrider_target.decoder_parameters import LayerParameters, LinearParameters, NormParameters, take_parameters


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
    def of(cls, norm: NormParameters) -> LeanNorm:
        """Shares the weight."""
        return cls(numbers_of(norm.weight), norm.epsilon)


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
        taken = take_parameters(model)
        return cls(
            embedding=taken.embedding,
            layers=tuple(_lean_layer(layer) for layer in taken.layers),
            final_norm=LeanNorm.of(taken.final_norm),
            head=_packed(taken.head),
            vocab_size=taken.vocab_size,
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


def _lean_layer(layer: LayerParameters) -> LeanLayer:
    return LeanLayer(
        input_norm=LeanNorm.of(layer.input_norm),
        projection=_packed(layer.projection),
        query_norm=None if layer.query_norm is None else LeanNorm.of(layer.query_norm),
        key_norm=None if layer.key_norm is None else LeanNorm.of(layer.key_norm),
        output=_packed(layer.output),
        mlp_norm=LeanNorm.of(layer.mlp_norm),
        gate_up=_packed(layer.gate_up),
        down=_packed(layer.down),
    )


def _packed(linear: LinearParameters) -> LeanLinear:
    return LeanLinear(packed_product(*linear), *linear.weight.shape)
