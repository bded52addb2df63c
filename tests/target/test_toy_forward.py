"""The toy forward itself: right batches give its law, wrong ones do not."""

from __future__ import annotations

import numpy as np
import pytest
from outrider_doubles.toy_forward import ToyForward

from outrider_target.forward import RaggedBatch

PROMPT = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3]


def one_row(tokens: list[int], first_position: int, blocks: list[int]) -> RaggedBatch:
    count = len(tokens)
    return RaggedBatch(
        token_ids=np.array(tokens, np.int64),
        positions=np.arange(first_position, first_position + count, dtype=np.int32),
        row_starts=np.array([0, count], np.int32),
        block_tables=np.array([blocks], np.int32),
        logit_indices=np.array([count - 1], np.int64),
    )


@pytest.fixture
def toy() -> ToyForward:
    forward = ToyForward(vocab_size=16, block_size=4)
    forward.allocate_cache(num_blocks=8)
    return forward


def test_any_chunking_follows_the_law(toy: ToyForward) -> None:
    for cut in range(1, len(PROMPT)):
        toy.run(one_row(PROMPT[:cut], 0, [5, 2, 7]))
        logits = toy.run(one_row(PROMPT[cut:], cut, [5, 2, 7]))
        assert np.array_equal(logits[0].numpy(), toy.law(PROMPT))


def test_a_wrong_block_table_changes_the_logits(toy: ToyForward) -> None:
    toy.run(one_row(PROMPT[:9], 0, [5, 2, 7]))
    logits = toy.run(one_row(PROMPT[9:], 9, [5, 3, 7]))
    assert not np.array_equal(logits[0].numpy(), toy.law(PROMPT))


def test_a_missing_write_changes_the_logits(toy: ToyForward) -> None:
    toy.run(one_row(PROMPT[:8], 0, [5, 2, 7]))
    logits = toy.run(one_row(PROMPT[9:], 9, [5, 2, 7]))
    assert not np.array_equal(logits[0].numpy(), toy.law(PROMPT))


def test_a_block_reused_under_another_parent_changes_the_logits(toy: ToyForward) -> None:
    toy.run(one_row(PROMPT[:8], 0, [5, 2, 7]))
    other = [7, 7, 7, 7, *PROMPT[4:]]
    toy.run(one_row(other[:4], 0, [1]))
    logits = toy.run(one_row(other[8:], 8, [1, 2, 7]))
    assert not np.array_equal(logits[0].numpy(), toy.law(other))


def test_the_named_token_breaks_only_prefixes_that_hold_it() -> None:
    forward = ToyForward(vocab_size=16, block_size=4, nan_token_id=9)
    forward.allocate_cache(num_blocks=8)
    assert np.isfinite(forward.run(one_row(PROMPT[:5], 0, [0, 1])).numpy()).all()
    assert np.isnan(forward.run(one_row(PROMPT[5:], 5, [0, 1, 2])).numpy()).all()
    assert np.isnan(forward.law(PROMPT)).all()
