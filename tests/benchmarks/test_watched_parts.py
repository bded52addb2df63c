"""What the step profile watches is still there: names in strings do not follow when code is renamed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from outrider_doubles.tiny_checkpoint import write_tiny_checkpoint

from outrider_runtime.models.loading import ModelDtype, load_causal_lm
from outrider_target.forward_choice import choose_forward
from outrider_target.transformers_forward import prepare_forward
from watched_parts import PARTS, REST, watch_engine


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

    def watch_inside(self, owner: object, name: str, label: str, spent_s: Callable[[], Mapping[str, float]]) -> None:
        self.watch(owner, name, label)
        self.labels |= set(spent_s())


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_what_is_watched_of_the_lean_decoder_exists(dtype: ModelDtype, tmp_path: Path) -> None:
    """In bfloat16 it runs in one pass, where the processor has instructions for it."""
    register: Any = Register()
    watch_engine(register, choose_forward(write_tiny_checkpoint(tmp_path), dtype, 128).forward)
    assert register.labels == set(PARTS) - {REST, "forward: layouts around attention"}


def test_what_is_watched_of_a_definition_exists(tmp_path: Path) -> None:
    model = load_causal_lm(write_tiny_checkpoint(tmp_path), "float32")
    register: Any = Register()
    watch_engine(register, prepare_forward(model, max_model_len=128))
    assert register.labels == set(PARTS) - {REST, "forward: norms and gated units"}
