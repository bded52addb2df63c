"""Draws: the same in Python and in compiled code, uniform, and independent between purposes, positions and seeds."""

import numpy as np
import pytest
from scipy.stats import chisquare

from outrider_kernels import draws_numba, noise
from outrider_kernels.draws import below, draw, unit
from outrider_kernels.noise import row_key

VECTORS = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (42, 100, 7), (2**64 - 1, 2**31 - 1, 64)]


@pytest.mark.parametrize(("seed", "position", "purpose"), VECTORS)
def test_both_forms_draw_the_same_bits(seed: int, position: int, purpose: int) -> None:
    bits = draw(seed, position, purpose)
    compiled = int(draws_numba.draw(np.uint64(seed), position, purpose))
    assert compiled == bits
    for total in (1, 3, 2**40, 2**58 + 12345, 2**62):
        assert draws_numba.below(np.uint64(bits), np.int64(total)) == below(bits, total) < total
    assert draws_numba.unit(np.uint64(bits)) == unit(bits)


def test_the_ends_of_the_range_stay_inside_it() -> None:
    largest = 2**64 - 1
    assert (below(0, 7), below(largest, 7)) == (0, 6)
    assert draws_numba.below(np.uint64(largest), np.int64(2**62)) == below(largest, 2**62) == 2**62 - 1
    assert 0 < unit(0) < unit(largest) < 1


def cells(values: list[int], count: int) -> np.ndarray:
    return np.array([below(bits, count) for bits in values])


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(lambda i: draw(i, 5, 0), lambda i: draw(i + 1, 5, 0), id="neighbouring seeds"),
        pytest.param(lambda i: draw(7, i, 0), lambda i: draw(7, i + 1, 0), id="neighbouring positions"),
        pytest.param(lambda i: draw(7, i, 1), lambda i: draw(7, i, 2), id="neighbouring places of a round"),
        pytest.param(lambda i: draw(7, i + 1, 1), lambda i: draw(7, i, 2), id="the same place of two rounds"),
        pytest.param(
            lambda i: draw(7, i, 0), lambda i: row_key(7, i).high << 32 | row_key(7, i).low, id="the coupled rule's key"
        ),
    ],
)
def test_pairs_of_draws_are_independent_and_uniform(first: object, second: object) -> None:
    a = cells([first(i) for i in range(60_000)], 12)  # type: ignore[operator]
    b = cells([second(i) for i in range(60_000)], 12)  # type: ignore[operator]
    assert chisquare(np.bincount(12 * a + b, minlength=144)).pvalue > 1e-3


def test_the_salt_is_what_parts_draws_from_noise() -> None:
    key = row_key(3, 4)
    assert noise.mix64((key.high << 32 | key.low) + noise.GOLDEN) != draw(3, 4, 0)
