"""Noise of neighbours is independent: what a hash with one round less fails."""

from __future__ import annotations

import numpy as np
import pytest

from outrider_kernels.noise import RowKey, hash_ids, row_key

NUM_ROWS = 300
NUM_IDS = 49152
CELLS = 64
DISTANCES = (1, 2, 3, 4, 5, 7, 8, 16, 64, 1024)


def three_rounds(key: RowKey, ids: np.ndarray) -> np.ndarray:
    return hash_ids(key, ids)


def two_rounds(key: RowKey, ids: np.ndarray) -> np.ndarray:
    """The published two-round finaliser "lowbias32", keyed in the same places."""
    x = ids ^ np.uint32(key.low)
    x = (x ^ (x >> np.uint32(16))) * np.uint32(0x7FEB352D)
    x = x ^ np.uint32(key.high)
    x = (x ^ (x >> np.uint32(15))) * np.uint32(0x846CA68B)
    return x ^ (x >> np.uint32(16))


def deviations(cells: np.ndarray) -> float:
    """Chi-square of a table that should be flat, in standard deviations from its mean."""
    expected = cells.sum() / cells.size
    chi_square = ((cells - expected) ** 2 / expected).sum()
    return float((chi_square - (cells.size - 1)) / np.sqrt(2 * (cells.size - 1)))


def neighbour_tables(rounds) -> list[float]:
    """For each distance d: how far the table of (top bits of id, top bits of id + d) is from flat."""
    ids = np.arange(NUM_IDS + max(DISTANCES), dtype=np.uint32)
    tables = np.zeros((len(DISTANCES), CELLS * CELLS))
    for position in range(NUM_ROWS):
        top = (rounds(row_key(7, position), ids) >> np.uint32(26)).astype(np.int64)
        for table, distance in zip(tables, DISTANCES, strict=True):
            pairs = top[:NUM_IDS] * CELLS + top[distance : NUM_IDS + distance]
            table += np.bincount(pairs, minlength=CELLS * CELLS)
    return [deviations(table) for table in tables]


def test_neighbouring_ids_have_independent_noise() -> None:
    assert max(abs(deviation) for deviation in neighbour_tables(three_rounds)) < 4


def test_a_hash_of_two_rounds_fails_the_neighbour_test() -> None:
    assert max(neighbour_tables(two_rounds)) > 10


@pytest.mark.parametrize("shift", [0, 16])
def test_low_and_high_bits_of_the_noise_are_uniform(shift: int) -> None:
    ids, cells = np.arange(NUM_IDS, dtype=np.uint32), np.zeros(1 << 16)
    for position in range(NUM_ROWS):
        hashes = three_rounds(row_key(13, position), ids)
        cells += np.bincount((hashes >> np.uint32(shift)).astype(np.int64) & 0xFFFF, minlength=1 << 16)
    assert abs(deviations(cells)) < 4


@pytest.mark.parametrize("rows", ["positions", "seeds"])
def test_rows_share_their_loudest_id_as_often_as_chance_has_it(rows: str) -> None:
    count = 1500
    ids = np.arange(NUM_IDS, dtype=np.uint32)
    keys = [row_key(17, row) if rows == "positions" else row_key(row, 17) for row in range(count)]
    loudest = np.bincount([int(three_rounds(key, ids).argmax()) for key in keys])
    pairs, expected = (loudest * (loudest - 1) // 2).sum(), count * (count - 1) / 2 / NUM_IDS
    assert abs(pairs - expected) < 4 * np.sqrt(expected)


@pytest.mark.parametrize("name", ["positions", "seeds", "seeds in the high half", "seed mirrors position"])
def test_consecutive_rows_have_independent_noise(name: str) -> None:
    keys = {
        "positions": lambda row: row_key(3, row),
        "seeds": lambda row: row_key(row, 3),
        "seeds in the high half": lambda row: row_key(row << 32, 3),
        "seed mirrors position": lambda row: row_key(10_000 - row, row),
    }[name]
    ids = np.arange(NUM_IDS, dtype=np.uint32)
    table, before = np.zeros(CELLS * CELLS), hash_ids(keys(0), ids) >> np.uint32(26)
    for row in range(1, 151):
        now = hash_ids(keys(row), ids) >> np.uint32(26)
        table += np.bincount(before.astype(np.int64) * CELLS + now, minlength=CELLS * CELLS)
        before = now
    assert abs(deviations(table)) < 4


def test_every_bit_of_key_and_id_reaches_every_output_bit() -> None:
    source = np.random.default_rng(1)
    ids = source.integers(0, 1 << 20, 4000, dtype=np.uint32)
    for position in range(3):
        key = row_key(11, position)
        base = hash_ids(key, ids)
        for bit in range(32):
            flips = [hash_ids(key, ids ^ np.uint32(1 << bit))]
            flips += [hash_ids(RowKey(key.low ^ (1 << bit), key.high), ids)]
            flips += [hash_ids(RowKey(key.low, key.high ^ (1 << bit)), ids)]
            for flipped in flips:
                changed = np.unpackbits((base ^ flipped).view(np.uint8)).reshape(-1, 32).mean(0)
                assert changed.min() > 0.4 and changed.max() < 0.6
