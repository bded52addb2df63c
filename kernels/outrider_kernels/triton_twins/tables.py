"""What Triton kernels are handed together: pointers and sizes by name, so that no kernel takes a dozen loose ones.

On the host the fields hold tensors and numbers; inside a kernel, pointers and scalars. Words and letters are those of
`outrider_kernels.contracts`; a *part* is a run of blocks of one logit row that one program reads.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, NamedTuple

RANK_ID_BITS = 22
"""Bits of a rank that hold the id: as many as `mass.MAX_VOCAB_SIZE` takes."""
TOTALS = 8
"""Sums of mass of one logit row: above 7 bounds, and of everything."""
FINITE_FLAG = 1
"""Some logit is finite."""
BAD_FLAG = 2
"""Some logit is NaN or +inf."""


class LogitTable(NamedTuple):
    """Logits of a step."""

    logits: Any
    """[N, V] float32, bfloat16 or float16; ids lie side by side."""
    stride: Any
    """Elements from one logit row to the next."""
    size: Any
    """V."""


class Edits(NamedTuple):
    """Logits that requests change: a list of ids for each row, and their changed values for each logit row."""

    ids: Any
    """[B, width] int32, of row b the first counts[b], ascending."""
    changed: Any
    """[N, width] float32, what the logits of these ids become."""
    counts: Any
    """[B] int32, 0 where nothing changes."""
    marks: Any
    """[B, words] int32: bit v % 32 of word v // 32 is set where id v is listed."""
    exclusive: Any
    """[B] int32, 1 where ids that are not listed may not be chosen."""
    masks: Any
    """[M, words] int32: bit v % 32 of word v // 32 is 1 where id v may be chosen."""
    mask_rows: Any
    """[N] int32, which of the masks a logit row has; -1 where it has none."""
    width: Any
    words: Any


class Parts(NamedTuple):
    """What each part of each logit row found, [N, parts] each."""

    tops: Any
    """float32, largest logit."""
    top_ids: Any
    """int32, the lowest id that has it."""
    bests: Any
    """float64, largest score; rows that sample without filters only."""
    best_ids: Any
    """int32, the lowest id that has it."""
    flags: Any
    """int32: FINITE_FLAG and BAD_FLAG."""
    maxima: Any
    """[N, spans] float32, largest logit of every `SPAN` ids; rows with filters only."""
    num_parts: Any
    num_spans: Any


class Candidates(NamedTuple):
    """Ids of filtered logit rows that may be kept."""

    tops: Any
    """[N] float32, largest logit of the row; -inf ends it, and stands for a bad row."""
    floors: Any
    """[N] int32, order key that no kept logit is below."""
    totals: Any
    """[N, parts, TOTALS] int64, sums of mass."""
    ranks: Any
    """[N, room] int64, of the first counts[n] candidates in no order."""
    counts: Any
    """[N] int32; more than there is room for: the row is searched as a whole."""


class Setting(IntEnum):
    """Columns of the settings of logit rows, [N, 8] int64; those of float64 hold its bits."""

    OWNER = 0
    """Row b that the logit row belongs to."""
    POSITION = 1
    SEED = 2
    TOP_K = 3
    """0 where it keeps all."""
    INVERSE = 4
    """float64, 1 / temperature."""
    TOP_P = 5
    """float64."""
    LOG_MIN_P = 6
    """float64, -inf where it keeps all."""
    KIND = 7
    """A `Kind`."""


class Kind(IntEnum):
    """How the token of a logit row is chosen."""

    GREEDY = 0
    NOISY = 1
    FILTERED = 2
    """Among what top-k, top-p and min-p keep."""
    DRAWN = 3
    """By a draw from the law of all ids, or of those that min-p keeps."""


class Laws(NamedTuple):
    """The target's laws of N positions, in the masses of `outrider_kernels.mass`."""

    masses: Any
    """[N, V] int64, 0 for ids that filters leave out."""
    totals: Any
    """[N] int64, sums of `masses`; 0 where no token is left."""
    size: Any
    """V."""


class TossRows(NamedTuple):
    """What the rules that toss coins need to know of B rows; fields as in `VerifyRows` and `SamplingRows`."""

    logit_starts: Any
    """[B + 1] int32."""
    proposed: Any
    """[N - B] int32."""
    seeds: Any
    """[B] uint64."""
    first_positions: Any
    """[B] int64."""


class DraftLaws(NamedTuple):
    """`DraftRows` on the device."""

    starts: Any
    """[N - B + 1] int32."""
    ids: Any
    """int32."""
    weights: Any
    """int64."""


class EditRules(NamedTuple):
    """By which rules listed ids change; see `outrider_kernels.logits_rows`."""

    biases: Any
    """[B, width] float64, 0 where there is none."""
    counts: Any
    """[B, width] int32, how often the output holds the id; 0 for one of the prompt alone, -1 where it was not seen."""
    endings: Any
    """[B, width] int32, 1 for ids that end the sequence."""
    penalties: Any
    """[B, 3] float64: repetition, presence, frequency."""
    ending_positions: Any
    """[B] int32"""
    word_rows: Any
    """[B + 1] int32, as in `LogitsRows`; likewise the rest."""
    word_starts: Any
    word_ids: Any
    recent_starts: Any
    recent_ids: Any
