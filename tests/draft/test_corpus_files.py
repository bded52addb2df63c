"""Documents for a corpus come from files as they are meant, or are refused with the place of the fault."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from outrider_draft.corpus_files import read_corpus
from outrider_draft.identity import WorkerIdentity
from outrider_draft.methods import parse_pool
from outrider_draft.worker import DraftWorker
from outrider_runtime.errors import InvalidConfig


def encode(texts: Iterable[str]) -> Iterable[Sequence[int]]:
    return [list(text.encode()) for text in texts]


WITH_TOKENIZER = WorkerIdentity("f", 256, encode)
WITHOUT = WorkerIdentity("f", 256)


def test_files_hold_ids_or_texts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines, text = tmp_path / "a.jsonl", tmp_path / "b.txt"
    lines.write_text('[1, 2, 3]\n\n{"token_ids": [4]}\n"AB"\n{"text": "C"}\n', "utf-8")
    text.write_text("one\ntwo", "utf-8")
    documents = read_corpus([str(lines), str(text)], WITH_TOKENIZER, 1 << 20)
    assert [ids.tolist() for ids in documents] == [[1, 2, 3], [4], [65, 66], [67], list(b"one\ntwo")]
    reported = capsys.readouterr().err
    assert "a.jsonl" in reported and "b.txt" in reported


def test_no_files_are_no_documents() -> None:
    assert read_corpus([], WITHOUT, 1) == []


@pytest.mark.parametrize(
    ("name", "content", "identity", "words"),
    [
        ("a.jsonl", "[1]\n[1, 256]\n", WITHOUT, (":2", "256")),
        ("a.jsonl", "[1]\n[-1]\n", WITHOUT, (":2",)),
        ("a.jsonl", "[1, 2", WITHOUT, (":1",)),
        ("a.jsonl", "[1.5]", WITHOUT, (":1", "array of token ids")),
        ("a.jsonl", "[true]", WITHOUT, (":1", "array of token ids")),
        ("a.jsonl", '{"ids": [1]}', WITHOUT, (":1", "array of token ids")),
        ("a.jsonl", '"text"', WITHOUT, (":1", "tokenizer")),
        ("a.txt", "text", WITHOUT, ("a.txt", "tokenizer")),
        ("a.parquet", "", WITHOUT, ("a.parquet", ".jsonl")),
        ("a.jsonl", "[1,2,3]\n" * 100, WITHOUT, ("max_corpus_bytes", "4096")),
    ],
)
def test_what_is_no_document_is_refused_with_its_place(
    tmp_path: Path, name: str, content: str, identity: WorkerIdentity, words: tuple[str, ...]
) -> None:
    (tmp_path / name).write_text(content, "utf-8")
    with pytest.raises(InvalidConfig) as caught:
        read_corpus([str(tmp_path / name)], identity, 4096)
    assert all(word in str(caught.value) for word in ("corpus_files", *words))


def test_a_missing_file_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(
        InvalidConfig, match=r"nowhere\.jsonl: no such file here; every node that runs workers needs it"
    ):
        read_corpus([str(tmp_path / "nowhere.jsonl")], WITHOUT, 4096)


async def test_a_worker_without_its_corpus_names_the_pool(tmp_path: Path) -> None:
    keys = {"name": "mine", "method": "suffix", "corpus_files": [str(tmp_path / "nowhere.jsonl")]}
    worker = DraftWorker(parse_pool(keys), WITHOUT)
    try:
        with pytest.raises(InvalidConfig, match=r"^pool mine: corpus_files: .*nowhere\.jsonl"):
            await worker.start()
    finally:
        await worker.stop(grace_s=0)
