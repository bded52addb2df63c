"""Bad words become ids by vLLM's rule."""

from __future__ import annotations

from pathlib import Path

import pytest
from outrider_doubles.tiny_tokenizer import write_tiny_tokenizer

from outrider_cluster.gateway.bad_words import bad_word_ids
from outrider_runtime.errors import InvalidRequest
from outrider_runtime.text.tokenizer import Tokenizer

WORDS = {"x": [1], " x": [2], "ab": [3, 4], " ab": [5, 4], "yz": [6], " yz": [7, 6], "": [], " ": [7]}


def test_a_word_counts_with_a_space_before_it_if_that_changes_its_first_id_alone() -> None:
    assert bad_word_ids(["x", "  ab", "yz"], WORDS.__getitem__) == ((1,), (2,), (3, 4), (5, 4), (6,))


def test_a_word_without_ids_is_refused_by_its_place() -> None:
    with pytest.raises(InvalidRequest, match=r"bad_words\[1\]"):
        bad_word_ids(["x", " "], WORDS.__getitem__)


def test_a_real_tokenizer_spells_both_forms(tmp_path: Path) -> None:
    write_tiny_tokenizer(tmp_path)
    tokenizer = Tokenizer.from_folder(tmp_path)

    def encode(text: str) -> list[int]:
        return tokenizer.encode(text, add_special_tokens=False)

    runs = bad_word_ids(["the"], encode)
    assert runs[0] == tuple(encode("the"))
    assert all(tokenizer.decode(run).strip() == "the" for run in runs)
