"""What the step profile watches is still there: names in strings do not follow when code is renamed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from outrider_doubles.tiny_checkpoint import write_tiny_checkpoint

from outrider_runtime.models.loading import load_causal_lm
from outrider_target import lean_weights
from outrider_target.transformers_forward import prepare_forward
from watched_parts import PARTS, REST, watch_engine, watch_model


class Register:
    """A stopwatch that asks whether what it is to watch can be called, and leaves it as it is."""

    def __init__(self) -> None:
        self.labels: set[str] = set()

    def watch(self, owner: object, name: str, label: str) -> None:
        assert callable(getattr(owner, name, None)), f"{owner} has no {name}"
        self.labels.add(label)

    def timed(self, function: Callable[..., Any], label: str) -> Callable[..., Any]:
        self.labels.add(label)
        return function


def test_what_is_watched_of_the_lean_decoder_exists(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lean_weights, "packed_product", lean_weights.packed_product)  # is put back afterwards
    register: Any = Register()
    watch_model(register)
    watch_engine(register, forward=object())  # type: ignore[arg-type]  # whatever is no definition is the lean decoder
    assert register.labels == set(PARTS) - {REST, "forward: output head", "forward: layouts around attention"}
    lean_weights.packed_product(torch.zeros(17 * 32, 32), None)
    assert "forward: output head" in register.labels


def test_what_is_watched_of_a_definition_exists(tmp_path: Path) -> None:
    model = load_causal_lm(write_tiny_checkpoint(tmp_path), "float32")
    register: Any = Register()
    watch_engine(register, prepare_forward(model, max_model_len=128))
    assert register.labels == set(PARTS) - {REST, "forward: linears", "forward: norms and gated units"}
