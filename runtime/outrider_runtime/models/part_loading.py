"""Loads a model of which this process holds only a part: what the others hold is never read."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import nn
from transformers import AutoModelForCausalLM, PreTrainedModel

from outrider_runtime.errors import ModelRefused, shorten
from outrider_runtime.models.loading import ModelDtype, failures_refused, read_config
from outrider_runtime.models.shard import Shard

_INDEX = "model.safetensors.index.json"
_BUILDING = threading.Lock()
"""transformers sets torch's default dtype while it builds a model."""


def empty_causal_lm(folder: Path, dtype: ModelDtype) -> PreTrainedModel:
    """The modules of the model in `folder`, without memory for weights. What it computes itself is there.

    Raises:
        ModelRefused: the folder fails `check_model_folder`, or is no causal language model that transformers knows.
    """
    config = read_config(folder)
    with failures_refused(folder), _BUILDING, torch.device("meta"):
        model: PreTrainedModel = AutoModelForCausalLM.from_config(config, dtype=getattr(torch, dtype))
    for module in model.modules():
        if any(buffer.is_meta for buffer in module.buffers(recurse=False)):
            module.to_empty(device="cpu", recurse=False)
            model._init_weights(module)
    return model


def fill_weights(model: PreTrainedModel, folder: Path, shards: Mapping[str, Shard]) -> None:
    """Read all parameters of a model from `empty_causal_lm`, tied ones once.

    Args:
        model: parameters with a shard have its width already.
        folder: holds the safetensors files.
        shards: parts to read, by parameter name; all others are read whole.

    Raises:
        ModelRefused: tensors are missing, or of another shape, by name.
    """
    parameters = dict(model.named_parameters(remove_duplicate=False))
    filled: dict[tuple[str, Shard | None], nn.Parameter] = {}
    with ExitStack() as stack:
        tensors = _Tensors(folder, stack)
        sources = {name: tensors.name_of(name, model) for name in parameters}
        _refuse(folder, "missing keys", [name for name, source in sources.items() if source is None])
        for name, parameter in parameters.items():
            source, shard = sources[name], shards.get(name)
            assert source is not None
            if (source, shard) not in filled:
                read = tensors.read(source, shard, parameter.shape).to(parameter.dtype)
                filled[source, shard] = nn.Parameter(read, requires_grad=False)
            owner, _, last = name.rpartition(".")
            setattr(model.get_submodule(owner), last, filled[source, shard])


class _Tensors:
    """The tensors in the files of a folder; files stay open as long as `stack`."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder = folder
        self._files: dict[str, Any] = {}
        self._file_of: dict[str, str] = {}
        index = folder / _INDEX
        weight_map = json.loads(index.read_text(encoding="utf-8"))["weight_map"] if index.is_file() else {}
        for file in sorted(set(weight_map.values())) or ["model.safetensors"]:
            try:
                self._files[file] = stack.enter_context(safe_open(folder / file, framework="pt"))
            except (SafetensorError, OSError) as error:
                raise ModelRefused(f"{folder / file}: cannot be loaded: {error}") from error
            self._file_of |= dict.fromkeys(self._files[file].keys(), file)

    def name_of(self, parameter: str, model: PreTrainedModel) -> str | None:
        """What a parameter is called in the files; with or without the name of the base model in front."""
        parameter = model.all_tied_weights_keys.get(parameter, parameter)
        prefix = f"{model.base_model_prefix}."
        names = (parameter, parameter.removeprefix(prefix), prefix + parameter)
        return next((name for name in names if name in self._file_of), None)

    def read(self, name: str, shard: Shard | None, shape: torch.Size) -> torch.Tensor:
        """A tensor, or a part of it with its padding; `shape` is what it must be then."""
        stored = self._files[self._file_of[name]].get_slice(name)
        found, expected = list(stored.get_shape()), list(shape)
        if shard is not None:
            expected[shard.dim] = shard.total
        if found != expected:
            _refuse(self._folder, "mismatched keys", [f"{name} {found}, expected {expected}"])
        ranges = [slice(None)] * len(found)
        if shard is not None:
            ranges[shard.dim] = slice(shard.start, shard.end)
        part: torch.Tensor = stored[tuple(ranges)]
        return part if shard is None else shard.pad(part)


def _refuse(folder: Path, kind: str, names: list[str]) -> None:
    if names:
        raise ModelRefused(f"{folder}: weights with {kind}: {shorten(sorted(names))}")
