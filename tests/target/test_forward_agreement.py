"""Our forward pass says what the model's own definition in transformers says."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import numpy as np
import pytest
import torch
from outrider_doubles.ragged import Row, ragged_batch, run_rows
from outrider_doubles.tiny_checkpoint import ARCHITECTURES, SLIDING_WINDOW, write_tiny_checkpoint
from outrider_doubles.tiny_tokenizer import TINY_VOCAB_SIZE

from outrider_runtime.errors import ModelRefused
from outrider_runtime.models.loading import load_causal_lm
from outrider_target import model_agreement
from outrider_target.forward import Forward, RaggedBatch
from outrider_target.forward_choice import lean_forward
from outrider_target.lean_forward import LeanForward
from outrider_target.transformers_forward import TransformersForward, prepare_forward, survey_model

LENGTH = 75
MARGIN = 1e-3
EitherForward = TransformersForward | LeanForward
GEMMA3 = {"sliding_window": SLIDING_WINDOW, "head_dim": 16, "layer_types": ["sliding_attention", "full_attention"]}
# One with layers of both kinds, one with experts, besides those that every test uses.
MORE = {"gemma3_text": GEMMA3, "mixtral": {"num_local_experts": 4}, "cohere": {}, "granite": {"logits_scaling": 8.0}}


def text(seed: int = 0, length: int = LENGTH) -> list[int]:
    ids: list[int] = np.random.default_rng(seed).integers(3, TINY_VOCAB_SIZE, length).tolist()
    return ids


def own_logits(folder: Path, ids: list[int]) -> torch.Tensor:
    model = load_causal_lm(folder, "float32")
    with torch.inference_mode():
        logits: torch.Tensor = model(torch.tensor([ids]), attention_mask=torch.ones(1, len(ids))).logits[0]
    return logits


@pytest.mark.parametrize("architecture", [*ARCHITECTURES, *MORE])
def test_logits_and_tokens_equal_those_of_transformers(architecture: str, tmp_path: Path) -> None:
    folder = write_tiny_checkpoint(tmp_path, architecture, **MORE.get(architecture, {}))
    expected = own_logits(folder, text())
    check_logits(prepare_forward(load_causal_lm(folder, "float32"), max_model_len=128), expected)


@pytest.mark.parametrize("architecture", ["llama", "mistral", "qwen2", "qwen3"])
def test_logits_and_tokens_of_the_lean_decoder_equal_those_of_transformers(architecture: str, tmp_path: Path) -> None:
    folder = write_tiny_checkpoint(tmp_path, architecture)
    expected = own_logits(folder, text())
    check_logits(lean_forward(survey_model(load_causal_lm(folder, "float32"), 128), 128), expected)


def check_logits(forward: Forward, expected: torch.Tensor) -> None:
    """In two chunks, over shuffled blocks."""
    forward.allocate_cache(8)
    blocks = [6, 1, 4, 3, 7]
    ours = torch.cat(
        [run_rows(forward, [Row(text()[:40], 0, blocks)])[0], run_rows(forward, [Row(text()[40:], 40, blocks)])[0]]
    )
    torch.testing.assert_close(ours, expected, atol=1e-4, rtol=1e-4)
    first, second = expected.topk(2).values.T
    clear = first - second > MARGIN
    assert clear.float().mean() > 0.9
    assert torch.equal(ours.argmax(1)[clear], expected.argmax(1)[clear])


def test_a_window_shorter_than_the_prompt_changes_the_logits(tmp_path: Path) -> None:
    """Otherwise the test above would prove nothing about windows."""
    windowed = own_logits(write_tiny_checkpoint(tmp_path / "a", "mistral"), text())
    full = own_logits(write_tiny_checkpoint(tmp_path / "b", "mistral", sliding_window=None), text())
    torch.testing.assert_close(windowed[:SLIDING_WINDOW], full[:SLIDING_WINDOW])
    assert (windowed[SLIDING_WINDOW:] - full[SLIDING_WINDOW:]).abs().amax(1).min() > 1e-2


@pytest.fixture(params=["transformers", "lean"])
def forward(request: pytest.FixtureRequest, tmp_path: Path) -> EitherForward:
    folder = write_tiny_checkpoint(tmp_path)
    forward = (
        prepare_forward(load_causal_lm(folder, "float32"), max_model_len=128)
        if request.param == "transformers"
        else lean_forward(survey_model(load_causal_lm(folder, "float32"), 128), 128)
    )
    forward.allocate_cache(8)
    return forward


def test_only_the_wanted_rows_are_returned_in_order(forward: EitherForward) -> None:
    batch = ragged_batch([Row(text(1, 10), 0, [0]), Row(text(2, 5), 0, [1])])
    every = forward.run(batch)
    fields = {name: getattr(batch, name) for name in ("token_ids", "positions", "row_starts", "block_tables")}
    wanted = np.array([3, 9, 14], np.int64)
    some = forward.run(RaggedBatch(**fields, logit_indices=wanted))
    assert torch.equal(some, every[torch.from_numpy(wanted)])
    assert every.shape == (15, forward.vocab_size)


def test_a_step_without_wanted_rows_still_writes_its_keys_and_values(
    forward: EitherForward,
) -> None:
    ids = text(length=20)
    expected = run_rows(forward, [Row(ids, 0, [0, 1])])[0][-1]
    batch = ragged_batch([Row(ids[:-1], 0, [2, 3])])
    fields = {name: getattr(batch, name) for name in ("token_ids", "positions", "row_starts", "block_tables")}
    assert forward.run(RaggedBatch(**fields, logit_indices=np.zeros(0, np.int64))).shape == (0, forward.vocab_size)
    assert torch.equal(run_rows(forward, [Row(ids[-1:], 19, [2, 3])])[0][0], expected)


def test_what_another_request_left_in_a_block_cannot_be_seen(forward: EitherForward) -> None:
    expected = run_rows(forward, [Row(text(), 0, range(5))])[0]
    cache = forward.cache
    assert cache is not None
    for block in chain(*cache.layers):
        block.fill(np.nan)
    found = torch.cat([run_rows(forward, [Row([token], place, range(5))])[0] for place, token in enumerate(text())])
    assert torch.equal(found, expected)


def test_the_cache_shape_counts_the_bytes_that_are_allocated(forward: EitherForward) -> None:
    shape = forward.cache_shape
    assert (shape.num_layers, shape.num_kv_heads, shape.head_dim, shape.block_size) == (2, 2, 16, 16)
    cache = forward.cache
    assert cache is not None
    assert sum(block.nbytes for block in chain(*cache.layers)) == 8 * shape.bytes_per_block


def test_shared_input_and_output_embeddings_stay_shared(tmp_path: Path) -> None:
    model = load_causal_lm(write_tiny_checkpoint(tmp_path, tie_word_embeddings=True), "float32")
    forward = prepare_forward(model, 128)
    assert forward.model.get_output_embeddings().weight is forward.model.get_input_embeddings().weight


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_model_that_we_would_serve_wrongly_is_refused_by_its_logits(
    dtype: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = load_causal_lm(write_tiny_checkpoint(tmp_path), dtype)  # type: ignore[arg-type]
    changed = model_agreement.OwnLogits.of(model, 128)
    own = model_agreement.OwnLogits(changed.token_ids, changed.logits.flip(0), changed.name, changed.dtype)
    monkeypatch.setattr(model_agreement.OwnLogits, "of", classmethod(lambda *_: own))
    with pytest.raises(ModelRefused, match="does not reproduce the model"):
        prepare_forward(model, 128)
