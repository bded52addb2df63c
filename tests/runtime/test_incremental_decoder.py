"""Pieces add up to the decoding of all ids, whatever the ids are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from outrider_doubles.tiny_tokenizer import EOS_ID, TINY_VOCAB_SIZE, write_tiny_tokenizer
from tokenizers import decoders, models

from outrider_runtime.errors import ModelRefused
from outrider_runtime.text import IncrementalDecoder, Tokenizer


@pytest.fixture(scope="module")
def byte_level(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    folder = tmp_path_factory.mktemp("byte_level")
    write_tiny_tokenizer(folder)
    return Tokenizer.from_folder(folder)


def write_sentencepiece(folder: Path, decoder: decoders.Decoder | None) -> None:
    """A vocabulary of bytes, of words with ▁ and of one special token, as Llama 2 and Gemma have it."""
    words = ["<s>", "▁", "▁the", "▁▁", "the", "a", "é", "日", "<0xZZ>"]
    tokens = [*words, *(f"<0x{byte:02X}>" for byte in range(256))]
    vocab = {token: index for index, token in enumerate(tokens)}
    tokenizer = tokenizers.Tokenizer(models.BPE(vocab=vocab, merges=[], byte_fallback=True))
    if decoder is not None:
        tokenizer.decoder = decoder
    tokenizer.add_special_tokens(["<s>"])
    tokenizer.save(str(folder / "tokenizer.json"))


@pytest.fixture(scope="module", params=[0, 1, 2], ids=["gemma", "llama", "strips two"])
def sentencepiece(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    folder = tmp_path_factory.mktemp("sentencepiece")
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    if request.param:
        steps.append(decoders.Strip(" ", request.param, 0))
    write_sentencepiece(folder, decoders.Sequence(steps))
    return Tokenizer.from_folder(folder)


def pieces_of(tokenizer: Tokenizer, chunks: Sequence[Sequence[int]]) -> list[str]:
    decoder = IncrementalDecoder(tokenizer)
    return [*(decoder.push(chunk) for chunk in chunks), decoder.flush()]


def lists_of_chunks(vocab_size: int) -> st.SearchStrategy[list[list[int]]]:
    ids = st.integers(0, vocab_size + 5)
    return st.lists(st.lists(ids, max_size=5), max_size=12)


@given(chunks=lists_of_chunks(TINY_VOCAB_SIZE))
@settings(max_examples=400)
def test_random_bytes_add_up(byte_level: Tokenizer, chunks: list[list[int]]) -> None:
    everything = [token for chunk in chunks for token in chunk]
    assert "".join(pieces_of(byte_level, chunks)) == byte_level.decode(everything)


@given(chunks=lists_of_chunks(270))
@settings(max_examples=400)
def test_random_sentencepieces_and_byte_tokens_add_up(sentencepiece: Tokenizer, chunks: list[list[int]]) -> None:
    everything = [token for chunk in chunks for token in chunk]
    assert "".join(pieces_of(sentencepiece, chunks)) == sentencepiece.decode(everything)


@given(text=st.text(max_size=40))
@settings(max_examples=200)
def test_real_text_comes_back_without_broken_characters(byte_level: Tokenizer, text: str) -> None:
    pieces = pieces_of(byte_level, [[token] for token in byte_level.encode(text)])
    assert "".join(pieces) == text
    assert "\ufffd" in text or not any("\ufffd" in piece for piece in pieces)


def test_a_character_appears_with_its_last_byte(byte_level: Tokenizer) -> None:
    decoder = IncrementalDecoder(byte_level)
    ids = byte_level.encode("🙂")
    assert len(ids) == 4
    assert [decoder.push([token]) for token in ids] == ["", "", "", "🙂"]


def test_special_tokens_do_not_split_a_character(byte_level: Tokenizer) -> None:
    first, *rest = byte_level.encode("é")
    assert "".join(pieces_of(byte_level, [[first], [EOS_ID], rest])) == "é"


def test_an_unfinished_character_becomes_a_replacement_at_the_end(byte_level: Tokenizer) -> None:
    assert pieces_of(byte_level, [byte_level.encode("a🙂")[:-1]]) == ["a", "\ufffd"]


def test_decoders_that_cannot_be_streamed_are_refused_by_name(tmp_path: Path) -> None:
    for decoder in (decoders.WordPiece(), decoders.Metaspace(), None):
        write_sentencepiece(tmp_path, decoder)
        with pytest.raises(ModelRefused, match=r"tokenizer\.json: decoder"):
            Tokenizer.from_folder(tmp_path)
