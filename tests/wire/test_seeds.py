"""Seeds that the server makes: short enough for JSON, and different for every choice."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from outrider_wire.sampling import MAX_CHOICES
from outrider_wire.seeds import choice_seed, choose_seed

seeds = st.integers(0, 2**64 - 1)


def test_a_chosen_seed_is_exact_in_json_and_uses_all_of_its_bits() -> None:
    chosen = [choose_seed(random.Random(7).getrandbits), choose_seed(lambda bits: (1 << bits) - 1)]
    assert chosen == [random.Random(7).getrandbits(53), 2**53 - 1]
    assert int(float(chosen[1])) == chosen[1]


@given(seeds)
def test_the_first_choice_uses_the_requests_own_seed(seed: int) -> None:
    assert choice_seed(seed, 0) == seed


@given(seeds)
def test_choices_of_a_request_have_different_seeds_of_64_bits(seed: int) -> None:
    mixed = [choice_seed(seed, index) for index in range(MAX_CHOICES)]
    assert len(set(mixed)) == MAX_CHOICES
    assert all(0 <= value < 2**64 for value in mixed)


@given(seeds, seeds, st.integers(1, MAX_CHOICES - 1))
def test_different_seeds_never_share_the_seed_of_a_choice(one: int, other: int, index: int) -> None:
    assert (choice_seed(one, index) == choice_seed(other, index)) == (one == other)


def test_neighbouring_seeds_do_not_share_choices() -> None:
    pairs = [(seed, index) for seed in range(1000) for index in range(MAX_CHOICES)]
    assert len({choice_seed(*pair) for pair in pairs}) == len(pairs)


def test_every_bit_of_the_seed_reaches_about_half_of_the_bits() -> None:
    changed = [(choice_seed(99, 3) ^ choice_seed(99 ^ (1 << bit), 3)).bit_count() for bit in range(64)]
    assert min(changed) >= 16 and max(changed) <= 48


def test_mixed_seeds_are_the_same_in_every_release() -> None:
    # Replaying a choice needs them: a change of these values breaks every seed that a response ever reported.
    assert [choice_seed(0, 1), choice_seed(0, 2), choice_seed(2**64 - 1, 15)] == [
        0x4EC322510FE444DC,
        0xF5B37E424B392192,
        0x5985D3FF03EA5993,
    ]
