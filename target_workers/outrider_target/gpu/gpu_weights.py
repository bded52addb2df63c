"""Weights of Llama-like models on a GPU, as they are: the kernels there need no packing."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from outrider_target.decoder_parameters import DecoderParameters, LayerParameters, LinearParameters, NormParameters


@dataclass(frozen=True, slots=True)
class GpuWeights:
    """All weights of a model, contiguous, on one device."""

    embedding: torch.Tensor
    """[V, E]"""
    layers: tuple[LayerParameters, ...]
    final_norm: NormParameters
    head: LinearParameters
    vocab_size: int
    """V; the head of one of several ranks has fewer outputs."""

    @classmethod
    def of(cls, taken: DecoderParameters, device: torch.device) -> GpuWeights:
        """Move a model's parameters, layer by layer."""
        embedding = taken.embedding.contiguous().to(device)
        is_shared = taken.head.weight.data_ptr() == taken.embedding.data_ptr()
        head = taken.head._replace(weight=embedding) if is_shared else taken.head
        return cls(
            embedding=embedding,
            layers=tuple(_moved_layer(layer, device) for layer in taken.layers),
            final_norm=_norm(taken.final_norm, device),
            head=_linear(head, device),
            vocab_size=taken.vocab_size,
        )


def _moved_layer(layer: LayerParameters, device: torch.device) -> LayerParameters:
    return LayerParameters(
        input_norm=_norm(layer.input_norm, device),
        projection=_linear(layer.projection, device),
        query_norm=None if layer.query_norm is None else _norm(layer.query_norm, device),
        key_norm=None if layer.key_norm is None else _norm(layer.key_norm, device),
        output=_linear(layer.output, device),
        mlp_norm=_norm(layer.mlp_norm, device),
        gate_up=_linear(layer.gate_up, device),
        down=_linear(layer.down, device),
    )


def _norm(norm: NormParameters, device: torch.device) -> NormParameters:
    return NormParameters(norm.weight.contiguous().to(device), norm.epsilon)


def _linear(linear: LinearParameters, device: torch.device) -> LinearParameters:
    bias = None if linear.bias is None else linear.bias.contiguous().to(device)
    return LinearParameters(linear.weight.contiguous().to(device), bias)
