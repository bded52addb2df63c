"""Which recorded step a step fits into: shapes that many steps share, by rows and depth. Pure."""

from __future__ import annotations

from dataclasses import dataclass

_MOST_ROWS = 256
MOST_TOKENS = 1024
"""Of a recorded step."""
_TOKENS_PER_ROW = (1, 2, 3, 5, 9, 17, 33, 65)
"""Depths of 0, 1, 2, 4, 8, ... proposals, and the committed id before them."""


@dataclass(frozen=True, slots=True)
class Bucket:
    """Steps of up to so many rows of up to so many tokens each."""

    rows: int
    tokens_per_row: int

    @property
    def tokens(self) -> int:
        """Of all rows."""
        return self.rows * self.tokens_per_row


@dataclass(frozen=True, slots=True)
class StepSizes:
    """How much room a step has on the device."""

    tokens: int
    """T"""
    wanted: int
    """N, tokens whose logits are wanted."""
    tiles: int
    """Of queries, for attention."""
    rows: int
    """B"""
    width: int
    """W, blocks of a row's table."""


def bucket_for(rows: int, longest: int) -> Bucket | None:
    """The smallest bucket for `rows` rows of at most `longest` tokens; None where a step is too large to be worth one.

    A long step keeps the GPU busy while the host starts its kernels one by one: recording it would gain nothing.
    """
    per_row = next((count for count in _TOKENS_PER_ROW if count >= longest), None)
    if per_row is None or rows > _MOST_ROWS:
        return None
    bucket = Bucket(1 << (rows - 1).bit_length(), per_row)
    return bucket if bucket.tokens <= MOST_TOKENS else None


def bucket_sizes(bucket: Bucket, tokens_of_tile: int, width: int) -> StepSizes:
    """Room for every step of a bucket.

    A step with fewer tokens is filled up with tokens of one more row, which has a block of its own. One that has no
    token to spare has no tile and no row to spare either.

    Args:
        bucket: of the step.
        tokens_of_tile: tokens of one row that attention takes at once.
        width: blocks of the longest sequence.
    """
    tiles = bucket.rows * -(-bucket.tokens_per_row // tokens_of_tile)
    return StepSizes(bucket.tokens, bucket.tokens, tiles, bucket.rows + 1, width)
