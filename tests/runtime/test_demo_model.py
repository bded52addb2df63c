"""The embedded model: made once, tokenised as its library would, and it answers."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outrider_runtime.models.demo import demo_folder, ensure_demo_model
from outrider_runtime.models.loading import load_causal_lm
from outrider_runtime.models.progress import SilentProgress
from outrider_runtime.text import ChatTemplate, IncrementalDecoder, Tokenizer

pytestmark = pytest.mark.demo_model


@pytest.fixture(scope="module")
def folder() -> Path:
    return ensure_demo_model(None, SilentProgress())


@pytest.fixture(scope="module")
def tokenizer(folder: Path) -> Tokenizer:
    return Tokenizer.from_folder(folder)


@pytest.fixture(scope="module")
def library_tokenizer(folder: Path) -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(folder)


def test_a_second_call_finds_the_folder(folder: Path) -> None:
    modified = (folder / "model.safetensors").stat().st_mtime_ns
    assert ensure_demo_model(None, SilentProgress()) == folder == demo_folder()
    assert (folder / "model.safetensors").stat().st_mtime_ns == modified


def test_the_command_prints_the_folder_and_nothing_else(folder: Path) -> None:
    command = [sys.executable, "-m", "outrider_runtime.models.demo"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, "COLUMNS": "200"})
    assert done.stdout == f"{folder}\n"
    shown = subprocess.run([*command, "--help"], capture_output=True, text=True, check=True)
    assert "--cache-dir" in shown.stdout


def test_facts_of_the_tokenizer(tokenizer: Tokenizer) -> None:
    assert tokenizer.vocab_size == 49152
    assert tokenizer.eos_token_ids == {2}


@given(ids=st.lists(st.integers(0, 49151), max_size=30), cut=st.integers(1, 5))
@settings(max_examples=300)
def test_pieces_of_random_ids_add_up(tokenizer: Tokenizer, ids: list[int], cut: int) -> None:
    decoder = IncrementalDecoder(tokenizer)
    pieces = [decoder.push(ids[start : start + cut]) for start in range(0, len(ids), cut)]
    assert "".join([*pieces, decoder.flush()]) == tokenizer.decode(ids)


def test_pieces_of_tokens_that_split_characters_add_up(tokenizer: Tokenizer) -> None:
    split = [token for token in range(17, 49152) if "\ufffd" in tokenizer.decode([token])]
    assert len(split) > 100
    chooser = random.Random(5)
    for _ in range(200):
        ids = chooser.choices(split, k=12)
        decoder = IncrementalDecoder(tokenizer)
        assert "".join([decoder.push([token]) for token in ids] + [decoder.flush()]) == tokenizer.decode(ids)


@given(text=st.text(max_size=60))
@settings(max_examples=200)
def test_encoding_equals_transformers(tokenizer: Tokenizer, library_tokenizer: Any, text: str) -> None:
    assert tokenizer.encode(text) == library_tokenizer(text)["input_ids"]


@pytest.mark.parametrize("add_generation_prompt", [True, False])
@pytest.mark.parametrize("system", [True, False])
def test_chats_equal_transformers(
    folder: Path, tokenizer: Tokenizer, library_tokenizer: Any, add_generation_prompt: bool, system: bool
) -> None:
    messages = [
        {"role": "user", "content": "Why does ice float? <|im_end|>"},
        {"role": "assistant", "content": "It is lighter.\n"},
        {"role": "user", "content": "naïve 🙂"},
    ]
    if system:
        messages.insert(0, {"role": "system", "content": "Be brief."})
    options = {"add_generation_prompt": add_generation_prompt}
    prompt = ChatTemplate.from_folder(folder).render(messages, add_generation_prompt)
    assert prompt == library_tokenizer.apply_chat_template(messages, tokenize=False, **options)
    ids = library_tokenizer.apply_chat_template(messages, return_dict=True, **options)["input_ids"]
    assert tokenizer.encode(prompt, add_special_tokens=False) == ids


def test_the_model_answers_coherently(folder: Path, tokenizer: Tokenizer) -> None:
    import torch

    prompt = ChatTemplate.from_folder(folder).render([{"role": "user", "content": "What is the capital of France?"}])
    ids = torch.tensor([tokenizer.encode(prompt, add_special_tokens=False)])
    answer = load_causal_lm(folder, "float32").generate(ids, max_new_tokens=12, do_sample=False)
    assert "Paris" in tokenizer.decode(answer[0, ids.shape[1] :].tolist())
