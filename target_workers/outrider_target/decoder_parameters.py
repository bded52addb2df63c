"""Parameters of Llama-like models, taken out of transformers' modules: what shares an input as one matrix."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from transformers import PreTrainedModel


class LinearParameters(NamedTuple):
    """Of `rows @ weight.T + bias`."""

    weight: torch.Tensor
    """[N, K]"""
    bias: torch.Tensor | None
    """[N]"""


class NormParameters(NamedTuple):
    """Of a root mean square norm."""

    weight: torch.Tensor
    epsilon: float


@dataclass(frozen=True, slots=True)
class LayerParameters:
    """Of one decoder layer."""

    input_norm: NormParameters
    projection: LinearParameters
    """To queries, keys and values."""
    query_norm: NormParameters | None
    key_norm: NormParameters | None
    output: LinearParameters
    mlp_norm: NormParameters
    gate_up: LinearParameters
    down: LinearParameters


@dataclass(frozen=True, slots=True)
class DecoderParameters:
    """Of a whole model."""

    embedding: torch.Tensor
    """[V, E]"""
    layers: Iterator[LayerParameters]
    """To be gone through once: the model is left without the linears of each, so that nothing is held twice."""
    final_norm: NormParameters
    head: LinearParameters
    """May share its weight with the embedding; that of one of several ranks has fewer outputs than V."""
    vocab_size: int
    """V"""


def take_parameters(model: PreTrainedModel) -> DecoderParameters:
    """Take the parameters out of a model of Llama's structure, which cannot run any more then."""
    decoder: Any = model.get_decoder()
    head: Any = model.get_output_embeddings()
    return DecoderParameters(
        embedding=model.get_input_embeddings().weight.detach(),
        layers=(_layer(layer) for layer in decoder.layers),
        final_norm=_norm(decoder.norm),
        head=_linear(head),
        vocab_size=int(head.out_features),
    )


def _layer(layer: Any) -> LayerParameters:
    attention, mlp = layer.self_attn, layer.mlp
    has_head_norms = hasattr(attention, "q_norm")
    return LayerParameters(
        input_norm=_norm(layer.input_layernorm),
        projection=_fused([attention.q_proj, attention.k_proj, attention.v_proj]),
        query_norm=_norm(attention.q_norm) if has_head_norms else None,
        key_norm=_norm(attention.k_norm) if has_head_norms else None,
        output=_fused([attention.o_proj]),
        mlp_norm=_norm(layer.post_attention_layernorm),
        gate_up=_fused([mlp.gate_proj, mlp.up_proj]),
        down=_fused([mlp.down_proj]),
    )


def _norm(module: Any) -> NormParameters:
    return NormParameters(module.weight.detach(), float(module.variance_epsilon))


def _fused(linears: Sequence[Any]) -> LinearParameters:
    """One linear for several with the same input, which are left without weights."""
    taken = [_linear(linear) for linear in linears]
    biases = [parameters.bias for parameters in taken if parameters.bias is not None]
    assert len(biases) in (0, len(linears)), "projections of one input have biases all or none"
    weight = torch.cat([parameters.weight for parameters in taken])
    for linear in linears:
        linear.weight.data = linear.weight.new_empty(0)
    return LinearParameters(weight, torch.cat(biases) if biases else None)


def _linear(module: Any) -> LinearParameters:
    return LinearParameters(module.weight.detach(), None if module.bias is None else module.bias.detach())
