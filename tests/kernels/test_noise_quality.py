"""Noise is uniform and that of neighbours independent, in vocabularies of any size: what one round less fails.

Numbers of samples are those of the study that chose this hash: 2.5e7 for each statistic of each family of rows, 4e8
pairs for each table of neighbours in a full vocabulary. Some are smaller, for the time they take: 1e8 pairs in small
vocabularies; 2.5e7 against the hash of two rounds, which fails by far; and 1.5e8 hashes in the search for the loudest
ids, which is 3,000 rows of a full vocabulary. All of it is a function of fixed keys, so that no run has bad luck.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from outrider_doubles.noise_rows import (
    FAMILIES,
    Counts,
    Hash,
    Hashes,
    count_cells,
    count_pairs,
    deviations,
    hash_blocks,
    row_keys,
    two_rounds,
)

from outrider_kernels.noise import RowKey, hash_ids, row_key

VOCABULARIES = [5, 64, 49152]
SAMPLES = 25_000_000
PAIRS = {5: 100_000_000, 64: 100_000_000, 49152: 400_000_000}
MOST_HASHES = 150_000_000
PAIR_DISTANCES = (1, 2, 3, 4, 5, 6, 7, 8, 16, 64, 1024)
ID_DISTANCES = (1, 2, 3, 16, 256, 4096)
ROW_DISTANCES = (1, 2, 64)
BOUND = 4.0
"""Standard deviations."""


@pytest.fixture(
    scope="module", params=itertools.product(VOCABULARIES, FAMILIES), ids=lambda given: "-".join(map(str, given))
)
def hashes(request: pytest.FixtureRequest) -> Hashes:
    """[rows, V] of one family."""
    vocab_size, family = request.param
    return np.concatenate(list(hash_blocks(family, vocab_size, SAMPLES)))


@pytest.fixture(scope="module")
def top_cells(hashes: Hashes) -> Counts:
    """[2**16] by the top 16 bits."""
    cells = np.zeros(1 << 16, np.int64)
    count_cells(hashes, 16, cells)
    return cells


@pytest.fixture(scope="module")
def centred(hashes: Hashes) -> np.ndarray:
    """[rows, V] float32 uniform numbers less 1/2."""
    return hashes.astype(np.float32) * np.float32(2**-32) - np.float32(0.5)


def test_keys_of_many_rows_are_those_of_each() -> None:
    seeds, positions = np.array([0, 3, 2**64 - 1], np.uint64), np.array([0, 2**31, 7], np.uint64)
    low, high = row_keys(seeds, positions)
    alone = [row_key(int(seed), int(position)) for seed, position in zip(seeds, positions, strict=True)]
    assert list(zip(low[:, 0].tolist(), high[:, 0].tolist(), strict=True)) == alone


def test_high_and_low_bits_are_uniform(hashes: Hashes, top_cells: Counts) -> None:
    low_cells = np.zeros(1 << 16, np.int64)
    count_cells(hashes, 0, low_cells)
    for cells in (top_cells, top_cells.reshape(256, 256).sum(1), low_cells):
        assert cells.sum() == hashes.size
        assert abs(deviations(cells)) < BOUND


def test_the_distribution_function_is_that_of_uniform_numbers(top_cells: Counts) -> None:
    # Kolmogorov-Smirnov at the edges of the cells: between two of them D grows by 2**-16 at most, 0.08 in these units.
    samples = top_cells.sum()
    distance = np.abs(top_cells.cumsum() / samples - np.arange(1, (1 << 16) + 1) / (1 << 16)).max()
    assert 0.3 < np.sqrt(samples) * distance < 2


def test_the_loudest_noise_is_as_frequent_as_it_should_be(top_cells: Counts) -> None:
    expected = top_cells.sum() * 2.0**-16
    assert abs(top_cells[-1] - expected) < BOUND * np.sqrt(expected)


def test_neighbours_are_not_correlated(centred: np.ndarray) -> None:
    rows, vocab_size = centred.shape
    pairs = [(centred[:, :-d], centred[:, d:]) for d in ID_DISTANCES if d < vocab_size]
    pairs += [(centred[:-d], centred[d:]) for d in ROW_DISTANCES if d < rows]
    for first, second in pairs:
        assert abs(12 * np.einsum("ij,ij->", first, second)) < BOUND * np.sqrt(first.size)


@pytest.mark.parametrize("axis", [0, 1], ids=["of an id over rows", "of a row over ids"])
def test_means_scatter_as_they_should(centred: np.ndarray, axis: int) -> None:
    count = centred.shape[axis]
    squares = 12 * count * centred.mean(axis, dtype=np.float64) ** 2
    # A mean of few uniform numbers is not quite normal: its fourth moment is smaller.
    assert abs((squares - 1).sum()) < BOUND * np.sqrt((2 - 1.2 / count) * len(squares))


def test_consecutive_rows_have_independent_noise(hashes: Hashes) -> None:
    for first, second in ((hashes[:-1], hashes[1:]), (hashes[:-2], hashes[2:]), (hashes[:-1, :-1], hashes[1:, 1:])):
        table = np.zeros((64, 64), np.int64)
        count_pairs(first, second, table)
        assert abs(deviations(table)) < BOUND


def pair_tables(vocab_size: int, count: int, hashed: Hash) -> dict[str, float]:
    """Deviations of the tables of pairs, in rows of consecutive positions."""
    distances = [distance for distance in PAIR_DISTANCES if distance < vocab_size]
    names = [*(f"ids {distance} apart" for distance in distances), "next row", "row after next", "diagonal"]
    tables = {name: np.zeros((64, 64), np.int64) for name in names}
    for block in hash_blocks("positions", vocab_size, count, hashed):
        for distance in distances:
            count_pairs(block[:, :-distance], block[:, distance:], tables[f"ids {distance} apart"])
        count_pairs(block[:-1], block[1:], tables["next row"])
        count_pairs(block[:-2], block[2:], tables["row after next"])
        count_pairs(block[:-1, :-1], block[1:, 1:], tables["diagonal"])
    return {name: deviations(table) for name, table in tables.items()}


@pytest.mark.parametrize("vocab_size", VOCABULARIES)
def test_neighbouring_ids_and_positions_have_independent_noise(vocab_size: int) -> None:
    found = pair_tables(vocab_size, PAIRS[vocab_size], hash_ids)
    assert {name: deviation for name, deviation in found.items() if abs(deviation) > BOUND} == {}


@pytest.mark.parametrize("vocab_size", VOCABULARIES)
def test_a_hash_of_two_rounds_fails_the_same_tables(vocab_size: int) -> None:
    assert max(pair_tables(vocab_size, SAMPLES, two_rounds).values()) > 10


@pytest.mark.parametrize("family", ["positions", "seeds"])
@pytest.mark.parametrize("vocab_size", VOCABULARIES)
def test_rows_share_their_loudest_id_as_often_as_chance_has_it(vocab_size: int, family: str) -> None:
    samples = min(MOST_HASHES, 40_000 * vocab_size)
    loudest = np.concatenate([block.argmax(1) for block in hash_blocks(family, vocab_size, samples)])
    count, counts = len(loudest), np.bincount(loudest)
    for found, chances in (
        ((counts * (counts - 1) // 2).sum(), count * (count - 1) / 2),
        ((loudest[1:] == loudest[:-1]).sum(), count - 1),
    ):
        expected = chances / vocab_size
        assert abs(found - expected) < BOUND * np.sqrt(expected * (1 - 1 / vocab_size)) + 1


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
