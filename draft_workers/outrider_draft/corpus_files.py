"""Reads documents for a corpus from files, and refuses what cannot be meant.

`.jsonl`: a document a line: an array of token ids, a text in quotes, or an object with `token_ids` or `text`.
`.txt`: one document. Texts need the tokenizer of the target.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from outrider_draft.config import CORPUS_ENDINGS
from outrider_draft.identity import WorkerIdentity
from outrider_draft.proposer import IdArray
from outrider_draft.suffix_text import BYTES_PER_ID
from outrider_runtime.errors import InvalidConfig, shorten

_LINES_A_STEP = 256


def read_corpus(paths: Sequence[str], identity: WorkerIdentity, max_bytes: int) -> list[IdArray]:
    """All documents of some files, in order, reported as they are read: by a bar on a terminal, else by lines.

    Args:
        paths: the files.
        identity: bounds ids, and encodes texts.
        max_bytes: memory that a corpus of these documents may take.

    Raises:
        InvalidConfig: a file cannot be read, holds what is no document, or all of them hold too much.
    """
    if not paths:
        return []
    from outrider_runtime.models.progress import choose_progress

    progress = choose_progress(sys.stderr)
    documents: list[IdArray] = []
    token_ids = 0
    try:
        for path in map(Path, paths):
            progress.stage(f"Reading {path}")
            for document, fraction in _documents(path, identity):
                documents.append(document)
                token_ids += len(document) + 1
                progress.advance_to(fraction)
                _check_size(token_ids, max_bytes, path)
    finally:
        progress.close()
    return documents


def _check_size(token_ids: int, max_bytes: int, path: Path) -> None:
    if token_ids * BYTES_PER_ID > max_bytes:
        raise InvalidConfig(f"corpus_files: more than max_corpus_bytes, {max_bytes}, with {path}")


def _documents(path: Path, identity: WorkerIdentity) -> Iterator[tuple[IdArray, float]]:
    """Documents of a file, and the part of it that has been read with each."""
    try:
        if path.suffix not in CORPUS_ENDINGS:
            raise InvalidConfig(f"corpus_files: {path}: allowed: {', '.join(CORPUS_ENDINGS)}")
        if path.suffix == ".txt":
            yield _encode([path.read_text("utf-8")], identity, str(path))[0], 1.0
            return
        size, read = max(1, path.stat().st_size), 0
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                read += len(line)
                if line.strip():
                    yield _parse(line, identity, f"{path}:{number}"), min(1.0, read / size)
    except FileNotFoundError as error:
        fix = "every node that runs workers needs it, under an absolute path or in the working_dir of runtime_env"
        raise InvalidConfig(f"corpus_files: {path}: no such file here; {fix}") from error
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidConfig(f"corpus_files: {path}: {error}") from error


def _parse(line: bytes, identity: WorkerIdentity, where: str) -> IdArray:
    try:
        value = json.loads(line)
    except ValueError as error:
        raise InvalidConfig(f"corpus_files: {where}: {error}") from error
    if isinstance(value, dict):
        value = value.get("token_ids", value.get("text"))
    if isinstance(value, str):
        return _encode([value], identity, where)[0]
    if isinstance(value, list) and all(type(token) is int for token in value):
        return _checked(value, identity, where)
    given, forms = (
        shorten(line.decode("utf-8", "replace").strip()),
        "an array of token ids, a text in quotes, or an object",
    )
    raise InvalidConfig(f"corpus_files: {where}: got {given}, allowed: {forms} with token_ids or text")


def _encode(texts: list[str], identity: WorkerIdentity, where: str) -> list[IdArray]:
    if identity.encode is None:
        raise InvalidConfig(f"corpus_files: {where}: a text, but this worker has no tokenizer; give token ids")
    return [_checked(ids, identity, where) for ids in identity.encode(texts)]


def _checked(ids: Sequence[int], identity: WorkerIdentity, where: str) -> IdArray:
    if ids and not 0 <= min(ids) <= max(ids) < identity.vocab_size:
        raise InvalidConfig(f"corpus_files: {where}: an id outside [0, {identity.vocab_size})")
    return np.array(ids, np.int32)
