"""A logit row as blocks: those of the vocabulary without the ids that a request changes, then those of these ids."""

from __future__ import annotations

import triton
import triton.language as tl

from outrider_kernels.triton_twins import tables
from outrider_kernels.triton_twins.order_triton import LAST_ID

_COLUMNS = tl.constexpr(len(tables.Setting))


@triton.jit
def whole_setting(settings: tl.tensor, row: tl.tensor, column: tl.constexpr) -> tl.tensor:
    """One setting of a logit row, int64."""
    return tl.load(settings + row * _COLUMNS + column)


@triton.jit
def real_setting(settings: tl.tensor, row: tl.tensor, column: tl.constexpr) -> tl.tensor:
    """One setting of a logit row, float64."""
    return whole_setting(settings, row, column).to(tl.float64, bitcast=True)


@triton.jit
def num_blocks(
    table: tables.LogitTable, edits: tables.Edits, owner: tl.tensor, BLOCK: tl.constexpr, EDITED: tl.constexpr
) -> tl.tensor:
    """Blocks of a logit row."""
    blocks = tl.cdiv(table.size, BLOCK)
    if EDITED:
        blocks += tl.cdiv(tl.load(edits.counts + owner), BLOCK)
    return blocks


@triton.jit
def fetch(
    table: tables.LogitTable,
    edits: tables.Edits,
    row: tl.tensor,
    owner: tl.tensor,
    block: tl.tensor,
    BLOCK: tl.constexpr,
    EDITED: tl.constexpr,
) -> tuple[tl.tensor, tl.tensor, tl.tensor]:
    """One block of a logit row.

    Returns:
        Raw logits [BLOCK] float32, -inf beyond the vocabulary; the logits to choose from [BLOCK] float32, -inf where
        there is nothing to choose; ids [BLOCK] int32.
    """
    places = block * BLOCK + tl.arange(0, BLOCK)
    raw = tl.load(table.logits + row * table.stride + places, mask=places < table.size, other=-float("inf")).to(
        tl.float32
    )
    ids, logits = places, raw
    if EDITED:
        words = tl.load(edits.marks + owner * edits.words + (places >> 5), mask=places < table.size, other=0)
        words |= ~load_mask(table, edits, row, places)
        hidden = (((words >> (places & 31)) & 1) | tl.load(edits.exclusive + owner)) != 0
        # After the blocks of the vocabulary, whose masks hide all that follows, come those of the list.
        in_list = (block - tl.cdiv(table.size, BLOCK)) * BLOCK + tl.arange(0, BLOCK)
        inside = (in_list >= 0) & (in_list < tl.load(edits.counts + owner))
        listed = tl.load(edits.ids + owner * edits.width + in_list, mask=inside, other=LAST_ID)
        changed = tl.load(edits.changed + row * edits.width + in_list, mask=inside, other=-float("inf"))
        ids = tl.where(in_list >= 0, listed, places)
        logits = tl.where(in_list >= 0, changed, tl.where(hidden, -float("inf"), raw))
    return raw, logits, ids


@triton.jit
def load_mask(table: tables.LogitTable, edits: tables.Edits, row: tl.tensor, ids: tl.tensor) -> tl.tensor:
    """Words (int32) of a logit row's mask that hold the bits of ids; all bits set where it has none."""
    mask_row = tl.load(edits.mask_rows + row).to(tl.int64)
    masked = tl.where(mask_row >= 0, ids, table.size) < table.size
    return tl.load(edits.masks + mask_row * edits.words + (ids >> 5), mask=masked, other=-1)
