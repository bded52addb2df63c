"""Every step that is recorded finds room in its bucket, and is filled up to the last place."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from outrider_doubles.ragged import Row, ragged_batch

from outrider_target.gpu.step_inputs import HostStep, filled_up, host_step, num_bytes, packed, unpacked
from outrider_target.gpu.step_shape import Bucket, bucket_for, bucket_sizes

SPARE = 99
WIDTH = 6


@st.composite
def rows(draw: st.DrawFn) -> list[Row]:
    counts = draw(st.lists(st.integers(1, 12), min_size=1, max_size=9))
    firsts = [draw(st.integers(0, 16 * WIDTH - count)) for count in counts]
    return [
        Row(list(range(100, 100 + count)), first, list(range(10 * i, 10 * i + -(-(first + count) // 16))))
        for i, (count, first) in enumerate(zip(counts, firsts, strict=True))
    ]


@given(rows(), st.integers(1, 40))
def test_a_step_that_is_filled_up_holds_the_step_and_one_row_of_equal_tokens(given_rows: list[Row], group: int) -> None:
    batch = ragged_batch(given_rows)
    step = host_step(batch, group)
    bucket = bucket_for(len(given_rows), max(len(row.token_ids) for row in given_rows))
    assert bucket is not None
    per_tile = max(32, 1 << (group - 1).bit_length()) // group
    sizes = bucket_sizes(bucket, per_tile, WIDTH)
    full = filled_up(step, sizes, SPARE)
    assert full.sizes == sizes
    for name in HostStep._fields[:-1]:
        own = getattr(step, name)
        assert np.array_equal(getattr(full, name)[: len(own)], own), name
    count, spare = len(step.token_ids), slice(len(step.token_ids), None)
    assert (full.token_rows[spare] == sizes.rows - 1).all() and full.block_tables[-1, 0] == SPARE
    assert (full.slots[spare] == 16 * SPARE).all() and (full.positions[spare] == 0).all()
    spare_tiles = full.tile_starts[len(step.tile_starts) :]
    assert len(spare_tiles) == 0 or count < sizes.tokens, "a tile to spare needs a token to spare"
    assert (spare_tiles == count).all() and (full.tile_ends[len(step.tile_starts) :] == count + 1).all()
    assert (full.wanted < count).all()


@given(rows())
def test_what_is_sent_in_one_piece_arrives_as_it_was(given_rows: list[Row]) -> None:
    step = host_step(ragged_batch(given_rows), 2)
    memory = packed(step)
    assert memory.dtype == torch.uint8 and len(memory) == num_bytes(step.sizes)
    found = unpacked(memory, step.sizes)
    flat = (*found[:5], *found.tiles, found.block_tables)
    for tensor, array in zip(flat, step, strict=True):
        assert tensor.numpy().dtype == array.dtype and np.array_equal(tensor.numpy(), array)
        assert (tensor.data_ptr() - memory.data_ptr()) % 16 == 0


def test_buckets_are_few_and_end_where_recording_is_worth_nothing() -> None:
    assert bucket_for(1, 1) == Bucket(1, 1)
    assert bucket_for(5, 4) == Bucket(8, 5)
    assert bucket_for(1, 66) is None
    assert bucket_for(257, 1) is None
    assert bucket_for(200, 5) is None
    assert bucket_for(200, 3) == Bucket(256, 3)
    every = {bucket_for(count, longest) for count in range(1, 300) for longest in range(1, 80)}
    assert len(every) < 70
