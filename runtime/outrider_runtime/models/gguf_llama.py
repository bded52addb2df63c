"""Converts a Llama model in GGUF form to a folder of safetensors and JSON, dequantised to float32.

Sources: the GGUF specification (ggml-org/ggml, docs/gguf.md) and llama.cpp's conversion script, whose order of rotary
dimensions in query and key weights is undone here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import tokenizers
from gguf import GGUFReader
from gguf.quants import dequantize
from safetensors.numpy import save_file
from tokenizers import decoders, models, pre_tokenizers

_CONTROL_TOKEN = 3
_LAYER_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_OUTER_NAMES = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}


class NamedWeight(NamedTuple):
    """One tensor under its transformers name."""

    name: str
    values: npt.NDArray[np.float32]


def convert_llama(gguf: Path, folder: Path, on_fraction: Callable[[float], None]) -> None:
    """Write config.json, generation_config.json, tokenizer files and model.safetensors of `gguf` into `folder`.

    Args:
        gguf: a Llama model with a byte-level BPE tokenizer.
        folder: an existing empty folder.
        on_fraction: called with the part of the work that is done, in [0, 1].
    """
    reader = GGUFReader(gguf)
    fields = {name: field.contents() for name, field in reader.fields.items()}
    config = _config(fields, tie_word_embeddings=all(tensor.name != "output.weight" for tensor in reader.tensors))
    _write_json(folder / "config.json", config)
    ends = {"bos_token_id": config["bos_token_id"], "eos_token_id": config["eos_token_id"]}
    _write_json(folder / "generation_config.json", {**ends, "pad_token_id": config["pad_token_id"]})
    _write_tokenizer(fields, folder)
    weights: dict[str, npt.NDArray[np.float32]] = {}
    for weight in _weights(reader, config):
        weights[weight.name] = weight.values
        on_fraction(0.9 * len(weights) / len(reader.tensors))
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    on_fraction(1.0)


def _config(fields: dict[str, Any], tie_word_embeddings: bool) -> dict[str, Any]:
    heads = fields["llama.attention.head_count"]
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": len(fields["tokenizer.ggml.tokens"]),
        "hidden_size": fields["llama.embedding_length"],
        "intermediate_size": fields["llama.feed_forward_length"],
        "num_hidden_layers": fields["llama.block_count"],
        "num_attention_heads": heads,
        "num_key_value_heads": fields["llama.attention.head_count_kv"],
        "head_dim": fields["llama.embedding_length"] // heads,
        "max_position_embeddings": fields["llama.context_length"],
        # GGUF keeps it in float32: 9.9999997e-06 stands for 1e-05.
        "rms_norm_eps": float(f"{fields['llama.attention.layer_norm_rms_epsilon']:.6g}"),
        "rope_theta": fields["llama.rope.freq_base"],
        "hidden_act": "silu",
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": tie_word_embeddings,
        "bos_token_id": fields["tokenizer.ggml.bos_token_id"],
        "eos_token_id": fields["tokenizer.ggml.eos_token_id"],
        "pad_token_id": fields["tokenizer.ggml.padding_token_id"],
        "torch_dtype": "float32",
    }


def _weights(reader: GGUFReader, config: dict[str, Any]) -> Iterator[NamedWeight]:
    heads = {"attn_q": config["num_attention_heads"], "attn_k": config["num_key_value_heads"]}
    for tensor in reader.tensors:
        values = np.asarray(dequantize(tensor.data, tensor.tensor_type), np.float32)
        if tensor.name in _OUTER_NAMES:
            yield NamedWeight(_OUTER_NAMES[tensor.name], values)
            continue
        _, layer, kind, _ = tensor.name.split(".")
        if kind in heads:
            values = _split_halves(values, heads[kind])
        yield NamedWeight(f"model.layers.{layer}.{_LAYER_NAMES[kind]}.weight", values)


def _split_halves(values: npt.NDArray[np.float32], num_heads: int) -> npt.NDArray[np.float32]:
    """Rotary pairs lie side by side in GGUF; transformers keeps their first members in the first half of a head."""
    pairs = values.reshape(num_heads, -1, 2, values.shape[1])
    return np.ascontiguousarray(pairs.swapaxes(1, 2).reshape(values.shape))


def _write_tokenizer(fields: dict[str, Any], folder: Path) -> None:
    tokens: list[str] = fields["tokenizer.ggml.tokens"]
    merges = [tuple(merge.split(" ", 1)) for merge in fields["tokenizer.ggml.merges"]]
    tokenizer = tokenizers.Tokenizer(models.BPE({token: index for index, token in enumerate(tokens)}, merges))
    # What GGUF calls the "smollm" pre-tokeniser: every digit alone, then GPT-2's rule.
    digits = pre_tokenizers.Digits(individual_digits=True)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([digits, pre_tokenizers.ByteLevel(add_prefix_space=False)])
    tokenizer.decoder = decoders.ByteLevel()
    kinds = fields["tokenizer.ggml.token_type"]
    control = [token for token, kind in zip(tokens, kinds, strict=True) if kind == _CONTROL_TOKEN]
    tokenizer.add_special_tokens(control)
    tokenizer.save(str(folder / "tokenizer.json"))
    roles = {"bos_token": "bos", "eos_token": "eos", "unk_token": "unknown", "pad_token": "padding"}
    settings = {role: tokens[fields[f"tokenizer.ggml.{name}_token_id"]] for role, name in roles.items()}
    settings["chat_template"] = fields["tokenizer.chat_template"]
    _write_json(folder / "tokenizer_config.json", {**settings, "tokenizer_class": "PreTrainedTokenizerFast"})


def _write_json(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
