"""The start-up probe tells exact forward passes from others."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numba
import pytest
import torch
from outrider_doubles.tiny_checkpoint import write_tiny_checkpoint
from outrider_doubles.toy_forward import ToyForward

from outrider_kernels import packed_linear
from outrider_kernels.row_padding import RowPadding
from outrider_runtime.models.demo import ensure_demo_model
from outrider_runtime.models.loading import ModelDtype, load_causal_lm
from outrider_runtime.models.progress import SilentProgress
from outrider_target import exact_modules
from outrider_target.forward import RaggedBatch
from outrider_target.forward_choice import choose_forward
from outrider_target.probe import probe_exactness
from outrider_target.transformers_forward import prepare_forward


class FollowsTheBatch(ToyForward):
    """Rounds like a matrix product whose path depends on the number of rows."""

    def __init__(self, tokens: int) -> None:
        super().__init__(vocab_size=64)
        self._tokens_that_differ = tokens

    def run(self, batch: RaggedBatch) -> torch.Tensor:
        logits = super().run(batch)
        if len(batch.token_ids) == self._tokens_that_differ:
            logits[-1, -1] = torch.nextafter(logits[-1, -1], torch.tensor(100.0))
        return logits


def test_a_forward_whose_rows_stand_alone_is_exact() -> None:
    result = probe_exactness(ToyForward(vocab_size=64))
    assert result.exact
    assert "kept all bits" in result.reason


def test_the_fingerprint_tells_targets_apart_that_are_exact_each_by_itself() -> None:
    first, again, other = (probe_exactness(ToyForward(64, sharpness=sharpness)) for sharpness in (4.0, 4.0, 4.0001))
    assert first.exact and other.exact
    assert first.fingerprint == again.fingerprint != other.fingerprint
    assert re.fullmatch(r"[0-9a-f]{12}", first.fingerprint)


@pytest.mark.parametrize(
    ("tokens", "reason"),
    [(1, "1 tokens at a time"), (7, "in chunks of 7"), (11, "11 tokens at a time"), (14, "beside 5 others")],
)
def test_one_bit_in_one_row_at_one_size_is_found_and_named(tokens: int, reason: str) -> None:
    result = probe_exactness(FollowsTheBatch(tokens))
    assert not result.exact
    assert reason in result.reason


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_prepared_model_is_exact(dtype: ModelDtype, tmp_path: Path) -> None:
    assert probe_exactness(prepare_forward(load_causal_lm(write_tiny_checkpoint(tmp_path), dtype), 128)).exact


@pytest.fixture(params=[1, 2], ids=["1 thread", "2 threads"])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    before = torch.get_num_threads(), numba.get_num_threads()
    torch.set_num_threads(request.param)
    numba.set_num_threads(min(request.param, numba.config.NUMBA_NUM_THREADS))
    yield request.param
    torch.set_num_threads(before[0])
    numba.set_num_threads(before[1])


@pytest.mark.demo_model
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_embedded_model_is_exact(dtype: ModelDtype, threads: int) -> None:
    folder = ensure_demo_model(None, SilentProgress())
    assert probe_exactness(prepare_forward(load_causal_lm(folder, dtype), 2048)).exact
    chosen = choose_forward(folder, dtype, 2048)
    assert chosen.description == "lean decoder"
    assert probe_exactness(chosen.forward).exact


def rows_in_fours(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    """The linear of a library that treats rows past a multiple of four in another way. Some do, on some machines."""
    rows = x.reshape(-1, x.shape[-1])
    out = torch.stack([(weight * row).double().sum(-1) for row in rows]).to(x.dtype) + (0 if bias is None else bias)
    out[len(rows) // 4 * 4 :] += 1
    return out.view(*x.shape[:-1], -1)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_with_a_library_that_follows_the_number_of_rows_only_padding_makes_a_model_exact(
    dtype: ModelDtype, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packed_linear.functional, "linear", rows_in_fours)
    folder = write_tiny_checkpoint(tmp_path)
    assert probe_exactness(prepare_forward(load_causal_lm(folder, dtype), 128)).exact
    monkeypatch.setattr(exact_modules, "find_row_padding", lambda *_: RowPadding())
    assert not probe_exactness(prepare_forward(load_causal_lm(folder, dtype), 128)).exact


@pytest.mark.demo_model
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_where_no_padding_helps_the_embedded_model_is_exact_with_products_of_our_own(
    dtype: ModelDtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exact_modules, "find_row_padding", lambda *_: None)
    forward = prepare_forward(load_causal_lm(ensure_demo_model(None, SilentProgress()), dtype), 2048)
    assert probe_exactness(forward).exact
