"""Facts that a tokenizer takes from its folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from outrider_doubles.tiny_tokenizer import EOS_ID, TINY_VOCAB_SIZE, write_tiny_tokenizer

from outrider_runtime.errors import InvalidRequest, ModelRefused
from outrider_runtime.text import Tokenizer


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_tiny_tokenizer(tmp_path)
    return tmp_path


def change(path: Path, change_definition: Any) -> None:
    definition = json.loads(path.read_text(encoding="utf-8"))
    change_definition(definition)
    path.write_text(json.dumps(definition), encoding="utf-8")


def test_text_survives_encoding_and_decoding(folder: Path) -> None:
    tokenizer = Tokenizer.from_folder(folder)
    text = "def f(x):\n\treturn 'naïve 🙂'"
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_special_tokens_have_ids_but_no_text(folder: Path) -> None:
    tokenizer = Tokenizer.from_folder(folder)
    ids = tokenizer.encode("a<|im_end|>b")
    assert len(ids) == 3
    assert tokenizer.decode(ids) == "ab"


def test_the_vocabulary_size_counts_up_to_the_largest_id(folder: Path) -> None:
    assert Tokenizer.from_folder(folder).vocab_size == TINY_VOCAB_SIZE


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, {EOS_ID}),  # the tokenizer's own end
        ({"generation_config.json": {"eos_token_id": 2}}, {EOS_ID, 2}),
        ({"generation_config.json": {"eos_token_id": [1, 2]}, "config.json": {"eos_token_id": 9}}, {EOS_ID, 1, 2}),
        ({"config.json": {"eos_token_id": 9}}, {EOS_ID, 9}),
        ({"config.json": {"text_config": {"eos_token_id": 7}}}, {EOS_ID, 7}),
    ],
)
def test_end_ids_come_from_generation_config_before_config(
    folder: Path, files: dict[str, Any], expected: set[int]
) -> None:
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content), encoding="utf-8")
    assert Tokenizer.from_folder(folder).eos_token_ids == expected


def test_a_missing_tokenizer_is_refused_by_file_name(tmp_path: Path) -> None:
    with pytest.raises(ModelRefused, match=r"tokenizer\.json: missing"):
        Tokenizer.from_folder(tmp_path)


@pytest.mark.parametrize("content", ["{", "[]", '{"model": {"type": "Nothing"}}'])
def test_a_damaged_tokenizer_is_refused(folder: Path, content: str) -> None:
    (folder / "tokenizer.json").write_text(content, encoding="utf-8")
    with pytest.raises(ModelRefused, match=r"tokenizer\.json"):
        Tokenizer.from_folder(folder)


def test_the_bytes_of_single_ids_add_up_to_the_text(folder: Path) -> None:
    tokenizer, text = Tokenizer.from_folder(folder), "the thing: \N{BLACK HEART SUIT} and more"
    assert b"".join(map(tokenizer.token_bytes, tokenizer.encode(text, add_special_tokens=False))) == text.encode()
    assert tokenizer.token_bytes(0) == b"<|endoftext|>"
    assert tokenizer.token_bytes(10**6) == b""


def test_half_a_surrogate_pair_is_an_invalid_request(folder: Path) -> None:
    with pytest.raises(InvalidRequest, match="surrogates"):
        Tokenizer.from_folder(folder).encode("a\ud83d")


def test_a_long_text_is_not_cut_by_a_training_limit(folder: Path) -> None:
    def limit(definition: dict[str, Any]) -> None:
        definition["truncation"] = {"max_length": 4, "strategy": "LongestFirst", "stride": 0, "direction": "Right"}

    change(folder / "tokenizer.json", limit)
    assert len(Tokenizer.from_folder(folder).encode("0123456789")) == 10


def test_the_fingerprint_ignores_layout_and_spelling_of_merges(folder: Path) -> None:
    before = Tokenizer.from_folder(folder).fingerprint

    def respell(definition: dict[str, Any]) -> None:
        definition["model"]["merges"] = [" ".join(merge) for merge in definition["model"]["merges"]]
        definition["model"]["vocab"] = dict(reversed(definition["model"]["vocab"].items()))

    change(folder / "tokenizer.json", respell)
    assert Tokenizer.from_folder(folder).fingerprint == before


@pytest.mark.parametrize("part", ["vocab", "merges", "added_tokens", "pre_tokenizer", "normalizer"])
def test_the_fingerprint_depends_on_all_that_decides_ids(folder: Path, part: str) -> None:
    before = Tokenizer.from_folder(folder).fingerprint

    def alter(definition: dict[str, Any]) -> None:
        vocab = definition["model"]["vocab"]
        if part == "vocab":
            vocab["a"], vocab["b"] = vocab["b"], vocab["a"]
        elif part == "merges":
            definition["model"]["merges"].pop()
        elif part == "added_tokens":
            definition["added_tokens"][1]["special"] = False
        elif part == "pre_tokenizer":
            definition["pre_tokenizer"]["add_prefix_space"] = True
        else:
            definition["normalizer"] = {"type": "NFC"}

    change(folder / "tokenizer.json", alter)
    assert Tokenizer.from_folder(folder).fingerprint != before
