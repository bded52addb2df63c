"""Conversion from GGUF, on a tiny file written the way llama.cpp writes them."""

from __future__ import annotations

import json
from pathlib import Path

import gguf
import numpy as np
import numpy.typing as npt
import pytest
from safetensors.numpy import load_file

from outrider_runtime.models.checks import check_model_folder
from outrider_runtime.models.gguf_llama import convert_llama
from outrider_runtime.text import ChatTemplate, Tokenizer

HIDDEN, HEADS, KV_HEADS, INNER, LAYERS = 32, 4, 2, 64, 2
TOKENS = ["<end>", "<start>", *(chr(code) for code in range(ord("!"), ord("~") + 1)), "Ġ", "ab"]
TEMPLATE = "{{ messages[0].content }}<end>"


def interleave(weight: npt.NDArray[np.float32], heads: int) -> npt.NDArray[np.float32]:
    """What llama.cpp does to query and key weights: members of a rotary pair come to lie side by side."""
    halves = weight.reshape(heads, 2, -1, weight.shape[1])
    return np.ascontiguousarray(halves.swapaxes(1, 2).reshape(weight.shape))


def original_weights() -> dict[str, npt.NDArray[np.float32]]:
    generator = np.random.default_rng(3)
    kv = HIDDEN // HEADS * KV_HEADS
    shapes = {"model.embed_tokens.weight": (len(TOKENS), HIDDEN), "model.norm.weight": (HIDDEN,)}
    for layer in range(LAYERS):
        prefix = f"model.layers.{layer}"
        shapes |= {
            f"{prefix}.input_layernorm.weight": (HIDDEN,),
            f"{prefix}.self_attn.q_proj.weight": (HIDDEN, HIDDEN),
            f"{prefix}.self_attn.k_proj.weight": (kv, HIDDEN),
            f"{prefix}.self_attn.v_proj.weight": (kv, HIDDEN),
            f"{prefix}.self_attn.o_proj.weight": (HIDDEN, HIDDEN),
            f"{prefix}.post_attention_layernorm.weight": (HIDDEN,),
            f"{prefix}.mlp.gate_proj.weight": (INNER, HIDDEN),
            f"{prefix}.mlp.up_proj.weight": (INNER, HIDDEN),
            f"{prefix}.mlp.down_proj.weight": (HIDDEN, INNER),
        }
    return {name: generator.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


@pytest.fixture
def gguf_file(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(LAYERS)
    writer.add_context_length(128)
    writer.add_embedding_length(HIDDEN)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_rope_freq_base(10000.0)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(TOKENS)
    writer.add_token_types([3, 3] + [1] * (len(TOKENS) - 2))
    writer.add_token_merges(["a b"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(0)
    writer.add_unk_token_id(0)
    writer.add_pad_token_id(0)
    writer.add_chat_template(TEMPLATE)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, LAYERS)
    for name, weight in original_weights().items():
        heads = HEADS if "q_proj" in name else KV_HEADS if "k_proj" in name else None
        target = names.get_name(name.removesuffix(".weight"))
        writer.add_tensor(f"{target}.weight", weight if heads is None else interleave(weight, heads))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.fixture
def converted(gguf_file: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "converted"
    folder.mkdir()
    convert_llama(gguf_file, folder, lambda fraction: None)
    return folder


def test_every_weight_comes_back_under_its_name(converted: Path) -> None:
    found = load_file(converted / "model.safetensors")
    expected = original_weights()
    assert found.keys() == expected.keys()
    for name, weight in expected.items():
        assert np.array_equal(found[name], weight), name


def test_the_configuration_is_that_of_the_file(converted: Path) -> None:
    config = json.loads((converted / "config.json").read_text(encoding="utf-8"))
    assert (config["hidden_size"], config["num_key_value_heads"], config["head_dim"]) == (HIDDEN, KV_HEADS, 8)
    assert config["rms_norm_eps"] == 1e-5
    assert config["tie_word_embeddings"] is True


def test_the_folder_can_be_served_and_tokenises(converted: Path) -> None:
    check_model_folder(converted)
    tokenizer = Tokenizer.from_folder(converted)
    assert tokenizer.eos_token_ids == {0}
    # Digits stand alone, merges apply, special tokens are recognised.
    assert [TOKENS[token] for token in tokenizer.encode("ab 12<end>")] == ["ab", "Ġ", "1", "2", "<end>"]
    assert ChatTemplate.from_folder(converted).render([{"role": "user", "content": "x"}]) == "x<end>"


def test_progress_grows_to_one(gguf_file: Path, tmp_path: Path) -> None:
    folder = tmp_path / "watched"
    folder.mkdir()
    fractions: list[float] = []
    convert_llama(gguf_file, folder, fractions.append)
    assert fractions == sorted(fractions)
    assert fractions[-1] == 1.0
