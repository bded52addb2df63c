"""Loads a checked model folder with transformers: safetensors only, no code from the folder, no network."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors import SafetensorError, safe_open
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from outrider_runtime.errors import ModelRefused, Words, shorten
from outrider_runtime.models.checks import check_model_folder

ModelDtype = Literal["float32", "bfloat16"]


def load_causal_lm(folder: Path, dtype: ModelDtype) -> PreTrainedModel:
    """A model on the CPU, in evaluation mode, with weights converted to `dtype`.

    Raises:
        ModelRefused: the folder fails `check_model_folder`, its architecture is no causal language model that
            transformers knows, or its weights are damaged or do not fit its configuration.
    """
    config = read_config(folder)
    model, report = _load(folder, config, getattr(torch, dtype))
    for kind in ("missing_keys", "mismatched_keys"):
        if report[kind]:
            # transformers would fill them with random numbers and go on
            raise ModelRefused(f"{folder}: weights with {kind.replace('_', ' ')}: {shorten(sorted(report[kind]))}")
    return model.eval().requires_grad_(False)


def read_config(folder: Path) -> Any:
    """Transformers' configuration of a causal language model.

    Raises:
        ModelRefused: the folder fails `check_model_folder`, or holds another kind of model.
    """
    check_model_folder(folder)
    with failures_refused(folder / "config.json"):
        config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    if config.model_type not in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES:
        raise ModelRefused(f"{folder / 'config.json'}: model_type {config.model_type!r} is no causal language model")
    return config


@contextmanager
def failures_refused(path: Path) -> Iterator[None]:
    """Around calls of transformers, which checks few settings itself: a wrong one breaks whatever code uses it.

    Raises:
        ModelRefused: anything but a lack of memory went wrong; it names `path`.
    """
    try:
        yield
    except (ModelRefused, MemoryError):
        raise
    except Exception as error:
        told = shorten(Words(" ".join(str(error).split())), 300)
        kind = "" if isinstance(error, (ValueError, OSError, RuntimeError)) else f"{type(error).__name__}: "
        raise ModelRefused(f"{path}: cannot be loaded: {kind}{told}") from error


def _load(folder: Path, config: Any, dtype: torch.dtype) -> tuple[Any, dict[str, Any]]:
    with failures_refused(folder):
        try:
            model, report = AutoModelForCausalLM.from_pretrained(
                folder,
                config=config,
                dtype=dtype,
                use_safetensors=True,
                local_files_only=True,
                trust_remote_code=False,
                # Both kinds of gaps are reported above, by name.
                ignore_mismatched_sizes=True,
                output_loading_info=True,
            )
        except SafetensorError as error:
            raise ModelRefused(f"{_broken_file(folder)}: cannot be loaded: {error}") from error
    return model, report


def _broken_file(folder: Path) -> Path:
    """The first file of weights whose beginning or length is wrong; the folder if that is not it."""
    for path in sorted(folder.glob("*.safetensors")):
        try:
            with safe_open(path, framework="pt"):
                pass
        except (SafetensorError, OSError):
            return path
    return folder
