"""Which models our forward pass can serve, judged by their configuration.

`attention_survey` judges their attention. Mixtures of experts are served; whether they are exact, only the probe says.
"""

from __future__ import annotations

from typing import Any

from transformers import PreTrainedModel

from outrider_runtime.errors import ModelRefused, shorten

_LAYER_TYPES = {"full_attention", "sliding_attention"}


def check_supported(model: PreTrainedModel, max_model_len: int) -> None:
    """Refuse a model that would be served wrongly.

    Args:
        model: a loaded causal language model.
        max_model_len: tokens of one sequence at most.

    Raises:
        ModelRefused: naming the setting: recurrent or hybrid state, layer kinds without a key-value cache, soft caps,
            attention to later tokens, an encoder, or sequences longer than the model knows positions for.
    """
    name = type(model).__name__
    config = model.config.get_text_config()
    num_layers = getattr(config, "num_hidden_layers", 1)
    if num_layers < 1:
        raise ModelRefused(f"{name}: num_hidden_layers is {num_layers}; only models with layers are served")
    if config.is_encoder_decoder:
        raise ModelRefused(f"{name}: is_encoder_decoder is true; only decoders are served")
    if getattr(model, "_is_stateful", False):
        raise ModelRefused(f"{name}: keeps recurrent state besides keys and values, which is not supported")
    unknown = sorted(set(getattr(config, "layer_types", None) or ()) - _LAYER_TYPES)
    if unknown:
        raise ModelRefused(f"{name}: layer_types holds {shorten(unknown)}, supported are {sorted(_LAYER_TYPES)}")
    _refuse_setting(name, config, "attn_logit_softcapping", "soft caps in attention are not supported")
    _refuse_setting(name, config, "use_bidirectional_attention", "attention to later tokens is not supported")
    _refuse_setting(name, config, "alibi", "position biases in attention are not supported")
    _refuse_setting(name, config, "num_kv_shared_layers", "layers that share keys and values are not supported")
    longest = getattr(config, "max_position_embeddings", None)
    if longest is not None and max_model_len > longest:
        raise ModelRefused(f"{name}: max_model_len is {max_model_len}, but max_position_embeddings is {longest}")


def _refuse_setting(name: str, config: Any, setting: str, reason: str) -> None:
    value = getattr(config, setting, None)
    if value:
        raise ModelRefused(f"{name}: {setting} is {shorten(value)}; {reason}")
