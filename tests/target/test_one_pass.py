"""A step as one call of compiled code has the bits of a step that calls its kernels one by one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numba
import numpy as np
import pytest
import torch
from outrider_doubles.ragged import Row, ragged_batch
from outrider_doubles.tiny_checkpoint import write_tiny_checkpoint
from outrider_doubles.tiny_tokenizer import TINY_VOCAB_SIZE

from outrider_kernels import decoder_pass_numba, key_value_cache_numba, own_linear
from outrider_kernels.decoder_instructions import (
    FloatsAndVectors,
    Instructions,
    PairsAndVectors,
    Tiles,
    TilesAndVectors,
)
from outrider_kernels.fused_linear_numba import FUSED_FLOATS
from outrider_kernels.panel_linear_numba import PAIRS
from outrider_kernels.panel_product import PanelKernel
from outrider_kernels.shared_work_numba import abandon
from outrider_kernels.tile_linear_numba import TILES
from outrider_runtime.models.loading import load_causal_lm
from outrider_target.forward import RaggedBatch
from outrider_target.forward_choice import lean_forward
from outrider_target.lean_forward import LeanForward
from outrider_target.one_pass import OnePass
from outrider_target.transformers_forward import survey_model

BLOCKS, BLOCK_SIZE = 64, 16
HEADS: dict[type[Instructions], int] = {Tiles: 32, TilesAndVectors: 16, PairsAndVectors: 16, FloatsAndVectors: 16}
KERNELS: dict[type[Instructions], PanelKernel] = {
    Tiles: TILES,
    TilesAndVectors: TILES,
    PairsAndVectors: PAIRS,
    FloatsAndVectors: FUSED_FLOATS,
}
CASES = [
    *((Tiles, architecture, {}) for architecture in ("llama", "mistral", "qwen2", "qwen3")),
    (TilesAndVectors, "llama", {"attention_bias": True, "mlp_bias": True}),
    (TilesAndVectors, "qwen3", {}),
    (PairsAndVectors, "llama", {}),
    (PairsAndVectors, "mistral", {}),
    (FloatsAndVectors, "llama", {"attention_bias": True, "mlp_bias": True}),
    (FloatsAndVectors, "mistral", {}),
    (FloatsAndVectors, "qwen3", {}),
]


@pytest.fixture(scope="module", params=CASES, ids=lambda case: f"{case[0].__name__}-{case[1]}")
def forward(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LeanForward]:
    kind, architecture, overrides = request.param
    kernel = KERNELS[kind]
    if not kernel.is_here():
        pytest.skip("a processor without these instructions")
    folder = tmp_path_factory.mktemp(architecture)
    write_tiny_checkpoint(folder, architecture, **{"head_dim": HEADS[kind], **overrides})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(own_linear, "_FAST_KERNELS", (kernel,))
        if kernel is not TILES:
            patch.setattr(key_value_cache_numba, "has_tile_products", lambda: False)
        chosen = lean_forward(survey_model(load_causal_lm(folder, "bfloat16"), 512), 512)
        assert isinstance(chosen, LeanForward)
        chosen.allocate_cache(BLOCKS)
        assert isinstance(_one_pass(chosen)._kind, kind)
        yield chosen


def _one_pass(forward: LeanForward) -> OnePass:
    assert forward.one_pass is not None
    return forward.one_pass


def _random_batch(random: np.random.Generator) -> RaggedBatch:
    rows, free = [], list(random.permutation(BLOCKS))
    for _ in range(random.integers(1, 7)):
        first, count = int(random.integers(0, 90)), int(random.choice([1, 1, 2, 5, 9, 17, 40]))
        needed = -(-(first + count) // BLOCK_SIZE)
        if needed > len(free):
            break
        rows.append(
            Row(random.integers(0, TINY_VOCAB_SIZE, count).tolist(), first, [free.pop() for _ in range(needed)])
        )
    batch = ragged_batch(rows)
    wanted = batch.logit_indices[random.random(len(batch.logit_indices)) < random.choice([0.2, 1.0])]
    return RaggedBatch(batch.token_ids, batch.positions, batch.row_starts, batch.block_tables, wanted)


def _cached(forward: LeanForward) -> list[np.ndarray]:
    assert forward.cache is not None
    return [array.copy() for layer in forward.cache.layers for array in layer]


@contextmanager
def _threads(count: int) -> Iterator[None]:
    before = numba.get_num_threads()
    numba.set_num_threads(min(count, numba.config.NUMBA_NUM_THREADS))
    yield
    numba.set_num_threads(before)


@pytest.mark.parametrize("threads", [1, 2])
def test_logits_and_cache_are_the_same_bits(forward: LeanForward, threads: int) -> None:
    random = np.random.default_rng(threads)
    with _threads(threads):
        for _ in range(25):
            batch = _random_batch(random)
            found, cache = forward.run(batch), _cached(forward)
            expected = forward.run_kernels(batch)
            assert found.shape == (len(batch.logit_indices), TINY_VOCAB_SIZE)
            assert torch.equal(found, expected)
            for ours, theirs in zip(cache, _cached(forward), strict=True):
                assert np.array_equal(ours, theirs)


def test_its_time_is_counted_by_part(forward: LeanForward) -> None:
    before_s = _one_pass(forward).spent_s()
    forward.run(ragged_batch([Row([1, 2, 3], 0, [0])]))
    assert all(after_s > before_s[part] for part, after_s in _one_pass(forward).spent_s().items())


def test_it_is_compiled_when_the_model_is_loaded(forward: LeanForward) -> None:
    before = decoder_pass_numba.run_decoder.signatures[:]  # type: ignore[attr-defined]
    forward.run(_random_batch(np.random.default_rng(7)))
    assert decoder_pass_numba.run_decoder.signatures == before  # type: ignore[attr-defined]


@pytest.mark.parametrize("token_id", [-1, TINY_VOCAB_SIZE])
def test_an_id_that_the_model_does_not_have_is_refused(forward: LeanForward, token_id: int) -> None:
    with pytest.raises(IndexError, match=f"given .*{token_id}"):
        forward.run(ragged_batch([Row([1, token_id], 0, [0])]))


def test_a_new_cache_takes_the_place_of_the_old_one(forward: LeanForward) -> None:
    batch = ragged_batch([Row([1, 2, 3], 0, [0])])
    expected = forward.run(batch)
    forward.allocate_cache(BLOCKS)
    assert not any(array.any() for array in _cached(forward))
    assert torch.equal(forward.run(batch), expected)
    assert any(array.any() for array in _cached(forward))


def test_time_that_was_counted_stays_counted_with_more_threads(forward: LeanForward) -> None:
    one_pass, batch = _one_pass(forward), ragged_batch([Row([1, 2, 3], 0, [0])])
    forward.run(batch)
    one_pass._cycles = one_pass._cycles[:1]
    before_s = one_pass.spent_s()
    with _threads(2):
        forward.run(batch)
    assert all(after_s >= before_s[part] for part, after_s in one_pass.spent_s().items())


def test_a_thread_that_fails_fails_the_step(forward: LeanForward, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object) -> None:
        abandon(arguments[4])

    monkeypatch.setattr("outrider_target.one_pass.run_decoder", fail)
    with pytest.raises(MemoryError, match="a thread of the decoder pass failed"):
        forward.run(ragged_batch([Row([1, 2, 3], 0, [0])]))
