"""The forward pass for GPUs with its kernels interpreted: what it says, that rows stand alone, what is recorded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import torch
from outrider_doubles.direct_recorder import DirectRecorder
from outrider_doubles.ragged import Row, ragged_batch, run_rows
from outrider_doubles.tiny_checkpoint import write_tiny_checkpoint
from outrider_doubles.tiny_tokenizer import TINY_VOCAB_SIZE

from outrider_runtime.errors import InvalidConfig, ModelRefused
from outrider_runtime.models.loading import load_causal_lm
from outrider_target import probe
from outrider_target.forward_choice import choose_forward, lean_forward
from outrider_target.gpu import step_shape
from outrider_target.gpu.gpu_choice import gpu_forward
from outrider_target.gpu.gpu_forward import GpuForward
from outrider_target.gpu.step_shape import Bucket
from outrider_target.transformers_forward import survey_model

LENGTH, BLOCKS = 64, 40
SIZES = {"hidden_size": 32, "intermediate_size": 40, "num_attention_heads": 2, "num_key_value_heads": 1}
"""Interpreted, a token takes some 20 ms a layer."""
CASES = [
    ("llama", "float32", {"num_hidden_layers": 2}),
    ("llama", "bfloat16", {"attention_bias": True, "mlp_bias": True, "num_hidden_layers": 1}),
    ("mistral", "bfloat16", {"num_hidden_layers": 1, "sliding_window": 6}),
    ("qwen2", "float32", {"num_hidden_layers": 1, "num_key_value_heads": 2}),
    ("qwen3", "bfloat16", {"num_hidden_layers": 1, "head_dim": 16}),
]


class Built(NamedTuple):
    forward: GpuForward
    recorder: DirectRecorder
    folder: Path
    dtype: str


def build(folder: Path, dtype: str) -> Built:
    surveyed = survey_model(load_causal_lm(folder, dtype), LENGTH)  # type: ignore[arg-type]
    recorder = DirectRecorder()
    forward = gpu_forward(surveyed, LENGTH, torch.device("cpu"), recorder)
    forward.allocate_cache(BLOCKS)
    return Built(forward, recorder, folder, dtype)


@pytest.fixture(scope="module", params=CASES, ids=lambda case: f"{case[0]}-{case[1]}")
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Built]:
    architecture, dtype, overrides = request.param
    folder = write_tiny_checkpoint(tmp_path_factory.mktemp(architecture), architecture, **SIZES | overrides)
    yield build(folder, dtype)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Built:
    folder = write_tiny_checkpoint(tmp_path_factory.mktemp("small"), num_hidden_layers=1, **SIZES)
    return build(folder, "float32")


def text(seed: int, count: int) -> list[int]:
    ids: list[int] = np.random.default_rng(seed).integers(0, TINY_VOCAB_SIZE, count).tolist()
    return ids


def test_it_says_what_the_decoder_of_the_cpu_says(built: Built) -> None:
    model = load_causal_lm(built.folder, built.dtype)  # type: ignore[arg-type]
    lean = lean_forward(survey_model(model, LENGTH), LENGTH)
    lean.allocate_cache(BLOCKS)
    rows = [Row(text(1, 17), 0, [3, 9]), Row(text(2, 2), 0, [0])]
    for found, expected in zip(run_rows(built.forward, rows), run_rows(lean, rows), strict=True):
        spread = float(expected.std())
        assert float((found - expected).abs().max()) < spread * (1e-4 if built.dtype == "float32" else 0.2)


def test_a_text_in_one_piece_has_the_bits_of_its_chunks_in_any_company(built: Built) -> None:
    ids, tables = text(3, 9), [0]
    [whole] = run_rows(built.forward, [Row(ids, 0, tables)])
    for row, own in enumerate(([(0, 9)], [(0, 5), (5, 6), (6, 9)], [(0, 3), (3, 8), (8, 9)])):
        pieces = []
        for start, end in own:
            before = [Row(text(start + i, 1 + i), 0, [20 + i]) for i in range(row)]
            after = [Row(text(50 + end, 3 - row), 0, [30])]
            piece = Row(ids[start:end], start, [2 * row + 2 + b for b in tables])
            pieces.append(run_rows(built.forward, [*before, piece, *after])[row])
        assert torch.equal(torch.cat(pieces), whole)


def test_a_step_that_is_too_long_to_be_recorded_has_the_bits_of_those_that_are(
    small: Built, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(step_shape, "_TOKENS_PER_ROW", (1, 2))
    ids, before = text(6, 17), small.recorder.recordings
    [whole] = run_rows(small.forward, [Row(ids, 0, [0, 1])])
    assert small.recorder.recordings == before
    pieces = [run_rows(small.forward, [Row(ids[at : at + 2], at, [2, 3])])[0] for at in range(0, 17, 2)]
    assert small.recorder.recordings == before + 2
    assert torch.equal(torch.cat(pieces), whole)


def test_the_probe_takes_it(small: Built, monkeypatch: pytest.MonkeyPatch) -> None:
    """With shorter texts than it has, which would be interpreted for minutes."""
    for name, value in {
        "_NUM_TOKENS": 9,
        "_MAX_VERIFY_TOKENS": 3,
        "_NUM_NEIGHBOURS": 2,
        "_NEIGHBOUR_TOKENS": 6,
    }.items():
        monkeypatch.setattr(probe, name, value)
    found = probe.probe_exactness(small.forward)
    assert found.exact, found.reason


def test_steps_of_a_bucket_are_recorded_once_and_do_not_overwrite_each_other(small: Built) -> None:
    forward, recorder = small.forward, small.recorder
    forward.allocate_cache(BLOCKS)
    before = recorder.recordings
    lengths = [(1, 3, 2), (3, 1, 1), (2, 2, 3), (2, 1, 2), (1, 2, 1)]
    steps = [
        [Row(text(10 * seed + i, count), 0, [3 * i]) for i, count in enumerate(counts)]
        for seed, counts in enumerate(lengths)
    ]
    found = [torch.cat(run_rows(forward, rows)) for rows in steps]
    assert forward.recorded == (Bucket(4, 3), Bucket(4, 2))
    assert recorder.recordings == before + 2
    for rows, logits in zip(steps, found, strict=True):
        alone = torch.cat([run_rows(forward, [row])[0] for row in rows])
        assert torch.equal(logits, alone)


def test_what_fills_a_step_up_touches_no_block_of_the_cache(small: Built) -> None:
    forward = small.forward
    forward.allocate_cache(4)
    run_rows(forward, [Row(text(1, 3), 0, [1]), Row(text(2, 1), 0, [3]), Row(text(3, 2), 0, [0])])
    written = [bool(keys[block].any()) for keys, _ in forward._cache for block in range(4)]
    assert written == [True, True, False, True]


@pytest.mark.parametrize("longest", [1, 8], ids=["launched", "recorded"])
def test_steps_without_wanted_logits_write_their_keys(
    small: Built, longest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(step_shape, "_TOKENS_PER_ROW", (1, longest))
    forward, ids = small.forward, text(4, 5)
    forward.allocate_cache(BLOCKS)
    batch = ragged_batch([Row(ids[:4], 0, [1])])
    nothing = replace(batch, logit_indices=batch.logit_indices[:0])
    assert forward.run(nothing).shape == (0, TINY_VOCAB_SIZE)
    [last] = run_rows(forward, [Row(ids[4:], 4, [1])])
    [whole] = run_rows(forward, [Row(ids, 0, [7])])
    assert torch.equal(last[0], whole[-1])


def test_a_new_cache_is_empty_and_forgets_what_wrote_into_the_old_one(small: Built) -> None:
    rows = [Row(text(5, 4), 0, [2])]
    [expected] = run_rows(small.forward, rows)
    small.forward.allocate_cache(BLOCKS)
    assert small.forward.recorded == ()
    assert not any(part.any() for layer in small.forward._cache for part in layer)
    assert torch.equal(run_rows(small.forward, rows)[0], expected)


@pytest.mark.parametrize("token_id", [-1, TINY_VOCAB_SIZE])
def test_an_id_that_the_model_does_not_have_is_refused(small: Built, token_id: int) -> None:
    with pytest.raises(IndexError, match=f"given .*{token_id}"):
        small.forward.run(ragged_batch([Row([1, token_id], 0, [0])]))


def test_a_shared_embedding_is_held_once(tmp_path: Path) -> None:
    folder = write_tiny_checkpoint(tmp_path, tie_word_embeddings=True, num_hidden_layers=1, **SIZES)
    forward = build(folder, "float32").forward
    weights = forward._decoder._weights
    assert weights.head.weight.data_ptr() == weights.embedding.data_ptr()


def test_other_models_are_refused_by_name(tmp_path: Path) -> None:
    surveyed = survey_model(load_causal_lm(write_tiny_checkpoint(tmp_path, "gemma"), "float32"), LENGTH)
    with pytest.raises(ModelRefused, match="not GemmaForCausalLM"):
        gpu_forward(surveyed, LENGTH, torch.device("cpu"), DirectRecorder())


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_not_there_is_named_with_what_is_allowed(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfig, match=r"target\.device: cuda, .* finds no GPU; allowed here: cpu"):
        choose_forward(tmp_path, "float32", LENGTH, device="cuda")
