"""Weights that cannot be read are refused with the file that holds them."""

from __future__ import annotations

from pathlib import Path

import pytest
from outrider_doubles.tiny_checkpoint import write_tiny_checkpoint

from outrider_runtime.errors import ModelRefused
from outrider_runtime.models.loading import load_causal_lm


@pytest.mark.parametrize("kept", [0, 4, 40, -1], ids=["nothing", "half a length", "half a header", "all but a byte"])
def test_weights_that_were_cut_off_are_refused_by_file(kept: int, tmp_path: Path) -> None:
    folder = write_tiny_checkpoint(tmp_path)
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:kept])
    with pytest.raises(ModelRefused) as refused:
        load_causal_lm(folder, "float32")
    assert str(refused.value).startswith(f"{weights}: cannot be loaded: ")
