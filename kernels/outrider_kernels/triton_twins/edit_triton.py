"""Triton twin of `outrider_kernels.changed_logits_reference`, for the ids alone that a request changes."""

from __future__ import annotations

import triton
import triton.language as tl

from outrider_kernels.triton_twins import tables
from outrider_kernels.triton_twins.row_blocks_triton import load_mask, whole_setting

_OWNER = tl.constexpr(int(tables.Setting.OWNER))
_LARGEST = tl.constexpr(3.4028234663852886e38)
_BANNED = tl.constexpr(-float("inf"))


@triton.jit
def edit(
    table: tables.LogitTable,
    edits: tables.Edits,
    settings: tl.tensor,
    rules: tables.EditRules,
    starts: tl.tensor,
    proposed: tl.tensor,
    BLOCK: tl.constexpr,
) -> None:
    """Fill `edits.changed`, every position as if all proposals before it were accepted. Grid [N, blocks of a list]."""
    row = tl.program_id(0).to(tl.int64)
    owner = whole_setting(settings, row, _OWNER)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = at < tl.load(edits.counts + owner)
    if tl.max(inside.to(tl.int32)) > 0:
        place = owner * edits.width + at
        ids = tl.load(edits.ids + place, mask=inside, other=0)
        start = tl.load(starts + owner)
        step = row.to(tl.int32) - start
        run = proposed + start - owner
        logits = tl.load(table.logits + row * table.stride + ids, mask=inside, other=0.0).to(tl.float32)
        allowed = (load_mask(table, edits, row, ids) >> (ids & 31)) & 1
        logits = tl.where(allowed != 0, logits, _BANNED)
        logits = _without_bad_words(logits, ids, rules, owner, run, step)
        ending = tl.load(rules.endings + place, mask=inside, other=0) != 0
        logits = tl.where(ending & (step < tl.load(rules.ending_positions + owner)), _BANNED, logits)
        banned = logits == _BANNED
        biased = _rounded(logits.to(tl.float64) + tl.load(rules.biases + place, mask=inside, other=0.0))
        counts = tl.load(rules.counts + place, mask=inside, other=-1)
        for past in range(step):
            counts = tl.where(ids == tl.load(run + past), tl.maximum(counts, 0) + 1, counts)
        values = tl.where(counts >= 0, _penalised(biased, counts, rules, owner), biased)
        tl.store(edits.changed + row * edits.width + at, tl.where(banned, _BANNED, values), mask=inside)


@triton.jit
def _penalised(logits: tl.tensor, counts: tl.tensor, rules: tables.EditRules, owner: tl.tensor) -> tl.tensor:
    repetition = tl.load(rules.penalties + owner * 3)
    presence, frequency = tl.load(rules.penalties + owner * 3 + 1), tl.load(rules.penalties + owner * 3 + 2)
    exact = logits.to(tl.float64)
    scaled = tl.where(exact > 0.0, exact / repetition, exact * repetition)
    return _rounded(scaled - frequency * counts.to(tl.float64) - tl.where(counts > 0, presence, 0.0))


@triton.jit
def _rounded(values: tl.tensor) -> tl.tensor:
    """float32, kept finite."""
    return tl.minimum(tl.maximum(values, -_LARGEST), _LARGEST).to(tl.float32)


@triton.jit
def _without_bad_words(
    logits: tl.tensor, ids: tl.tensor, rules: tables.EditRules, owner: tl.tensor, run: tl.tensor, step: tl.tensor
) -> tl.tensor:
    """Logits with the last id of a bad word banned where the output ends with the ids before it."""
    recent_start = tl.load(rules.recent_starts + owner)
    committed = tl.load(rules.recent_starts + owner + 1) - recent_start
    for word in range(tl.load(rules.word_rows + owner), tl.load(rules.word_rows + owner + 1)):
        first = tl.load(rules.word_starts + word)
        before = tl.load(rules.word_starts + word + 1) - first - 1
        begun = before <= committed + step
        for back in range(1, tl.minimum(before, committed + step) + 1):
            from_run = tl.load(run + step - back, mask=back <= step, other=0)
            recent = rules.recent_ids + recent_start + committed + step - back
            token = tl.where(back <= step, from_run, tl.load(recent, mask=back > step, other=0))
            begun &= token == tl.load(rules.word_ids + first + before - back)
        logits = tl.where(begun & (ids == tl.load(rules.word_ids + first + before)), _BANNED, logits)
    return logits
