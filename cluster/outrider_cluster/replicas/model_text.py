"""What gateways and draft workers need to know of a model, from its small files alone: no weights, no torch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from outrider_cluster.gateway.served_model import ServedModel
from outrider_draft.identity import WorkerIdentity
from outrider_runtime.errors import ModelRefused
from outrider_runtime.models.source import resolve_text_files
from outrider_runtime.text.chat_template import ChatTemplate
from outrider_runtime.text.model_files import read_json
from outrider_runtime.text.tokenizer import Tokenizer
from outrider_target.settings import ModelSettings


def served_model(
    model: ModelSettings, pools: tuple[str, ...], latency_classes: tuple[str, ...] = (), is_synthetic: bool = False
) -> ServedModel:
    """The model as a gateway knows it. Blocks while files are read or fetched.

    Args:
        model: which one.
        pools: draft pools that requests may ask for.
        latency_classes: classes that requests may name.
        is_synthetic: whether acceptance is pretended.

    Raises:
        ModelRefused: it cannot be had, or its tokenizer or template is of no use.
    """
    folder = _folder(model)
    tokenizer, template = Tokenizer.from_folder(folder), ChatTemplate.from_folder(folder)
    return ServedModel(model.name, tokenizer, template, pools, latency_classes, is_synthetic)


def worker_identity(model: ModelSettings) -> WorkerIdentity:
    """The tokenizer that draft workers draft for. Blocks while files are read or fetched.

    Raises:
        ModelRefused: the model cannot be had, or its tokenizer or configuration is of no use.
    """
    folder = _folder(model)
    return WorkerIdentity(Tokenizer.from_folder(folder).fingerprint, vocab_size(folder), partial(_encode, folder))


def _encode(folder: Path, texts: Iterable[str]) -> Iterator[Sequence[int]]:
    """Ids of texts. The tokenizer lives as long as that takes: a draft worker stays small."""
    tokenizer = Tokenizer.from_folder(folder)
    for text in texts:
        yield tokenizer.encode(text, add_special_tokens=False)


def vocab_size(folder: Path) -> int:
    """Ids that the model's output has, as its config.json says; may be more than the tokenizer has.

    Raises:
        ModelRefused: config.json does not say it.
    """
    config = read_json(folder / "config.json")
    inner = config.get("text_config")
    size = config.get("vocab_size", inner.get("vocab_size") if isinstance(inner, dict) else None)
    if not isinstance(size, int) or size < 1:
        raise ModelRefused(f"{folder / 'config.json'}: vocab_size is {size!r}, expected a positive integer")
    return size


def _folder(model: ModelSettings) -> Path:
    return resolve_text_files(model.source, model.revision, model.cache_dir)
