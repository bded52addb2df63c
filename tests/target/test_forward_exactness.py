"""Exact mode: a token's logits keep every bit, whoever else is in the step and however the text is cut."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numba
import numpy as np
import pytest
import torch
from outrider_doubles.ragged import Row, run_rows
from outrider_doubles.tiny_checkpoint import ARCHITECTURES, write_tiny_checkpoint
from outrider_doubles.tiny_tokenizer import TINY_VOCAB_SIZE

from outrider_runtime.models.loading import ModelDtype, load_causal_lm
from outrider_target.forward import Forward
from outrider_target.forward_choice import lean_forward
from outrider_target.transformers_forward import prepare_forward, survey_model

LENGTH = 75
OURS, OTHERS = range(5), (range(5, 10), range(10, 15), range(15, 20))
PLAIN, LEAN = "transformers", "lean"
LEAN_ARCHITECTURES = ("llama", "mistral", "qwen2", "qwen3")
CASES = [(PLAIN, architecture, "float32", 1) for architecture in ARCHITECTURES] + [
    (PLAIN, "llama", "float32", 2),
    (PLAIN, "llama", "bfloat16", 1),
    (PLAIN, "llama", "bfloat16", 2),
    (PLAIN, "mistral", "bfloat16", 2),
    (PLAIN, "gpt2", "bfloat16", 2),
    *((LEAN, architecture, "float32", 1) for architecture in LEAN_ARCHITECTURES),
    *((LEAN, architecture, "bfloat16", 2) for architecture in LEAN_ARCHITECTURES),
    (LEAN, "llama", "float32", 2),
    (LEAN, "llama", "bfloat16", 1),
]


def load(kind: str, folder: Path, dtype: ModelDtype) -> Forward:
    if kind == PLAIN:
        return prepare_forward(load_causal_lm(folder, dtype), max_model_len=128)
    return lean_forward(survey_model(load_causal_lm(folder, dtype), 128), 128)


@contextmanager
def threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads(), numba.get_num_threads()
    torch.set_num_threads(count)
    numba.set_num_threads(min(count, numba.config.NUMBA_NUM_THREADS))
    try:
        yield
    finally:
        torch.set_num_threads(before[0])
        numba.set_num_threads(before[1])


@pytest.fixture(scope="module", params=CASES, ids=lambda case: "-".join(map(str, case)))
def forward(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forward]:
    kind, architecture, dtype, count = request.param
    folder = write_tiny_checkpoint(tmp_path_factory.mktemp(architecture), architecture)
    with threads(count):
        forward = load(kind, folder, dtype)
        forward.allocate_cache(20)
        yield forward


def text(seed: int, length: int = LENGTH) -> list[int]:
    ids: list[int] = np.random.default_rng(seed).integers(3, TINY_VOCAB_SIZE, length).tolist()
    return ids


@pytest.fixture(scope="module")
def reference(forward: Forward) -> torch.Tensor:
    """Logits [LENGTH, V] of the text alone, one token at a time."""
    rows = [run_rows(forward, [Row([token], place, OURS)])[0] for place, token in enumerate(text(0))]
    return torch.cat(rows)


def same_bits(found: torch.Tensor, expected: torch.Tensor) -> bool:
    return torch.equal(found.contiguous().view(torch.int32), expected.contiguous().view(torch.int32))


@pytest.mark.parametrize("chunk", [LENGTH, 64, 33, 16, 7, 3])
def test_any_chunking_of_the_prompt(forward: Forward, reference: torch.Tensor, chunk: int) -> None:
    for start in range(0, LENGTH, chunk):
        found = run_rows(forward, [Row(text(0)[start : start + chunk], start, OURS)])[0]
        assert same_bits(found, reference[start : start + chunk])


@pytest.mark.parametrize("depth", range(11))
def test_verifying_with_rejections_and_going_on(forward: Forward, reference: torch.Tensor, depth: int) -> None:
    """Each round proposes `depth` ids of which some are wrong; rejected keys and values are overwritten."""
    chooser = np.random.default_rng(depth)
    run_rows(forward, [Row(text(0)[:40], 0, OURS)])
    place = 40
    while place + depth < LENGTH:
        right = int(chooser.integers(0, depth + 1))
        proposed = text(0)[place : place + 1 + right] + text(99, depth - right)
        found = run_rows(forward, [Row(proposed, place, OURS)])[0]
        assert same_bits(found[: right + 1], reference[place : place + right + 1])
        place += right + 1


@pytest.mark.parametrize("neighbours", [1, 2, 3])
@pytest.mark.parametrize("count", [1, 2, 5, 9])
def test_neighbours_that_prefill_decode_and_verify(
    forward: Forward, reference: torch.Tensor, neighbours: int, count: int
) -> None:
    others = [text(seed) for seed in range(1, neighbours + 1)]
    run_rows(forward, [Row(text(0)[:30], 0, OURS), *(Row(other[:20], 0, OTHERS[i]) for i, other in enumerate(others))])
    lengths = [1, 6, 40]
    beside = [Row(other[20 : 20 + lengths[i]], 20, OTHERS[i]) for i, other in enumerate(others)]
    for place in range(30, 30 + 4 * count, count):
        rows = [*beside[:1], Row(text(0)[place : place + count], place, OURS), *beside[1:]]
        found = run_rows(forward, rows)[1]
        assert same_bits(found, reference[place : place + count])


def test_recomputing_after_preemption_in_other_blocks(forward: Forward, reference: torch.Tensor) -> None:
    run_rows(forward, [Row(text(0)[:50], 0, OTHERS[2]), Row(text(1)[:10], 0, OTHERS[1])])
    found = run_rows(forward, [Row(text(0)[50:], 50, OTHERS[2])])[0]
    assert same_bits(found, reference[50:])


def test_a_hot_prefix_cache(forward: Forward, reference: torch.Tensor) -> None:
    """Two sequences read the same full blocks; the second computes only what comes after them."""
    run_rows(forward, [Row(text(0)[:32], 0, OURS)])
    shared = [*OURS[:2], *OTHERS[0][:3]]
    assert same_bits(run_rows(forward, [Row(text(0)[32:], 32, shared)])[0], reference[32:])


@pytest.mark.parametrize("kind", [PLAIN, LEAN])
def test_a_width_that_is_no_multiple_of_the_vector_length(kind: str, tmp_path: Path) -> None:
    sizes = {"hidden_size": 60, "intermediate_size": 100, "num_attention_heads": 3, "num_key_value_heads": 1}
    forward = load(kind, write_tiny_checkpoint(tmp_path, **sizes), "float32")
    forward.allocate_cache(20)
    alone = torch.cat([run_rows(forward, [Row([token], place, OURS)])[0] for place, token in enumerate(text(0))])
    assert same_bits(run_rows(forward, [Row(text(0), 0, OURS)])[0], alone)
