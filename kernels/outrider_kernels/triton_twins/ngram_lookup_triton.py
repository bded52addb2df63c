"""Prompt lookup on GPUs for a batch of sessions; contract and reference: `outrider_kernels.ngram_lookup`.

No table is kept: every place of every row is compared with the row's end, which at memory speed costs less than a
table's upkeep. A place where a run ends gets the rank `length of the run << 32 | LAST_PLACE - place`, so that the
greatest rank is the longest run that ends first. Programs of `rank_runs` find the greatest of BLOCK places each; one
program a row of `take_proposals` takes the greatest of these, and copies.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from outrider_kernels.contracts import PADDING_ID
from outrider_kernels.ngram_lookup import Proposals
from outrider_kernels.triton_twins.registry import Variant

_BLOCK = 1024
_LAST_PLACE = tl.constexpr(2**31 - 1)
_PADDING_ID = tl.constexpr(PADDING_ID)


def look_up(
    token_ids: torch.Tensor, lengths: torch.Tensor, depths: torch.Tensor, shortest: int, longest: int, width: int
) -> Proposals:
    """Propose; see `outrider_kernels.ngram_lookup` for every argument.

    Raises:
        ValueError: a dtype, shape or bound is not the contract's.
    """
    batch, places = token_ids.shape
    if not lengths.shape == depths.shape == (batch,):
        raise ValueError(f"expected {batch} lengths and depths, given {tuple(lengths.shape)} and {tuple(depths.shape)}")
    if any(tensor.dtype != torch.int32 or not tensor.is_contiguous() for tensor in (token_ids, lengths, depths)):
        raise ValueError("expected token_ids, lengths and depths contiguous int32")
    if not 1 <= shortest <= longest or width < 1:
        raise ValueError(f"expected 1 <= shortest <= longest and a width, given {shortest}, {longest} and {width}")
    proposed = torch.empty(batch, width, dtype=torch.int32, device=token_ids.device)
    counts = torch.empty(batch, dtype=torch.int32, device=token_ids.device)
    chunks = max(1, triton.cdiv(places, _BLOCK))
    ranks = torch.empty(batch, chunks, dtype=torch.int64, device=token_ids.device)
    if batch:
        rank_runs[(batch, chunks)](
            token_ids, lengths, ranks, places, SHORTEST=shortest, LONGEST=longest, BLOCK=_BLOCK
        )  # fmt: skip
        take_proposals[(batch,)](
            token_ids, lengths, depths, ranks, proposed, counts, places, chunks, width,
            CHUNKS=triton.next_power_of_2(chunks), WIDTH=triton.next_power_of_2(width), num_warps=1,
        )  # fmt: skip
    return Proposals(proposed, counts)


@triton.jit
def rank_runs(
    token_ids: tl.tensor,
    lengths: tl.tensor,
    ranks: tl.tensor,
    places: tl.tensor,
    SHORTEST: tl.constexpr,
    LONGEST: tl.constexpr,
    BLOCK: tl.constexpr,
) -> None:
    """The greatest rank among BLOCK places of one row; 0 where no run is long enough."""
    row = tl.program_id(0)
    chunk = tl.program_id(1)
    ids = token_ids + row.to(tl.int64) * places
    length = tl.load(lengths + row)
    end = chunk * BLOCK + 1 + tl.arange(0, BLOCK)  # ids up to and including the run's last one
    alike = end < length
    run = tl.zeros([BLOCK], tl.int32)
    for back in tl.static_range(1, LONGEST + 1):
        alike = alike & (end >= back)
        wanted = tl.load(ids + length - back, mask=length >= back, other=0)
        alike = alike & (tl.load(ids + end - back, mask=alike, other=0) == wanted)
        run += alike.to(tl.int32)
    rank = (run.to(tl.int64) << 32) | (-end.to(tl.int64) + _LAST_PLACE)
    rank = tl.where(run >= SHORTEST, rank, 0)
    tl.store(ranks + row * tl.num_programs(1) + chunk, tl.max(rank, 0))


@triton.jit
def take_proposals(
    token_ids: tl.tensor,
    lengths: tl.tensor,
    depths: tl.tensor,
    ranks: tl.tensor,
    proposed: tl.tensor,
    counts: tl.tensor,
    places: tl.tensor,
    chunks: tl.tensor,
    width: tl.tensor,
    CHUNKS: tl.constexpr,
    WIDTH: tl.constexpr,
) -> None:
    """What followed the best run of one row."""
    row = tl.program_id(0)
    chunk = tl.arange(0, CHUNKS)
    rank = tl.max(tl.load(ranks + row * chunks + chunk, mask=chunk < chunks, other=0), 0)
    end = -(rank & _LAST_PLACE).to(tl.int32) + _LAST_PLACE
    most = tl.minimum(tl.load(depths + row), width)
    count = tl.where(rank > 0, tl.minimum(most, tl.load(lengths + row) - end), 0)
    x = tl.arange(0, WIDTH)
    ids = tl.load(token_ids + row.to(tl.int64) * places + end + x, mask=x < count, other=_PADDING_ID)
    tl.store(proposed + row * width + x, ids, mask=x < width)
    tl.store(counts + row, count)


_TENSORS = {"token_ids": "*i32", "lengths": "*i32"}
_TAKEN = {"depths": "*i32", "ranks": "*i64", "proposed": "*i32", "counts": "*i32"}
VARIANTS = (
    Variant(
        name="rank runs 2 to 5",
        kernel=rank_runs,
        signature={
            **_TENSORS,
            "ranks": "*i64",
            "places": "i32",
            **dict.fromkeys(("SHORTEST", "LONGEST", "BLOCK"), "constexpr"),
        },
        constants={"SHORTEST": 2, "LONGEST": 5, "BLOCK": _BLOCK},
        hot=True,
        options={},
    ),
    Variant(
        name="take proposals",
        kernel=take_proposals,
        signature={
            **_TENSORS,
            **_TAKEN,
            **dict.fromkeys(("places", "chunks", "width"), "i32"),
            **dict.fromkeys(("CHUNKS", "WIDTH"), "constexpr"),
        },
        constants={"CHUNKS": 128, "WIDTH": 16},
        num_warps=1,
        hot=True,
        options={},
    ),
)
