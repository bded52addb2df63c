"""What is known of a text's tokens before it is tokenised: never more than it has, nothing where text may be lost."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from outrider_doubles.tiny_tokenizer import write_tiny_tokenizer

from outrider_runtime.text import Tokenizer
from outrider_runtime.text.token_reach import TokenReach, token_reach

LONGEST = len("<|endoftext|>")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tokenizer")
    write_tiny_tokenizer(folder)
    return folder


@pytest.fixture(scope="module")
def tokenizer(folder: Path) -> Tokenizer:
    return Tokenizer.from_folder(folder)


@given(text=st.text(st.characters(exclude_categories=("Cs",))) | st.sampled_from(["<|endoftext|>" * 9, " the" * 3000]))
def test_no_text_has_fewer_tokens_than_foretold(tokenizer: Tokenizer, text: str) -> None:
    assert tokenizer.least_tokens(text) <= len(tokenizer.encode(text))


def test_a_long_text_is_foretold_to_be_long(tokenizer: Tokenizer) -> None:
    assert tokenizer.least_tokens("a " * 1_000_000) == -(-2_000_000 // LONGEST)
    assert tokenizer.least_tokens("\ud800" * 26) == 2


def changed(folder: Path, change: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    definition: dict[str, Any] = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    change(definition)
    return definition


@pytest.mark.parametrize(
    "change",
    [
        lambda it: it.update(normalizer={"type": "Strip", "strip_left": True, "strip_right": True}),
        lambda it: it.update(normalizer={"type": "Replace", "pattern": {"String": "  "}, "content": " "}),
        lambda it: it.update(normalizer={"type": "Replace", "pattern": {"Regex": " +"}, "content": " "}),
        lambda it: it.update(pre_tokenizer={"type": "WhitespaceSplit"}),
        lambda it: it.update(pre_tokenizer={"type": "Split", "pattern": {"String": " "}, "behavior": "Removed"}),
        lambda it: it.update(pre_tokenizer=None),
        lambda it: it["model"].update(type="WordPiece"),
        lambda it: it["added_tokens"][0].update(rstrip=True),
    ],
)
def test_nothing_is_foretold_where_text_may_be_lost(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    assert token_reach(changed(folder, change)) is None


def test_composition_and_bytes_without_a_token_are_allowed_for(folder: Path) -> None:
    composing = changed(folder, lambda it: it.update(normalizer={"type": "NFC"}))
    assert token_reach(composing) == TokenReach(4 * LONGEST)
    lossy = changed(folder, lambda it: it["model"]["vocab"].pop("Ċ"))
    assert token_reach(lossy) == TokenReach(LONGEST, b"\n")
    assert TokenReach(LONGEST, b"\n").least_tokens("\n" * 1000 + "a") == 1


def test_a_vocabulary_that_falls_back_on_bytes_is_measured_in_bytes() -> None:
    vocab = {f"<0x{byte:02X}>": byte for byte in range(256)} | {"▁the": 256, "▁▁▁": 257}
    spaces = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
    normalizer = {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"}, spaces]}
    definition = {"model": {"type": "BPE", "byte_fallback": True, "vocab": vocab}, "normalizer": normalizer}
    assert token_reach(definition) == TokenReach(9)
    del vocab["<0x0A>"]
    assert token_reach(definition) is None


def test_a_long_text_is_encoded_as_a_short_one_is_and_leaves_the_lock_to_others(tokenizer: Tokenizer) -> None:
    piece = tokenizer.encode("naïve the\n", add_special_tokens=False)
    assert tokenizer.encode("naïve the\n" * 300, add_special_tokens=False) == piece * 300
    working = threading.Thread(target=tokenizer.encode, args=("a " * 200_000,))
    working.start()
    ticks = 0
    while working.is_alive():
        time.sleep(0.001)
        ticks += 1
    assert ticks > 3, "the lock was held"  # then this thread would not run before the other one ends
