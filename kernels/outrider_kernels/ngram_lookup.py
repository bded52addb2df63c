"""Contract and reference of prompt lookup for a batch of sessions.

For each row: the longest run of its last ids, of a length within [shortest, longest], that also ends earlier in the row
(overlap is allowed); of its occurrences the first. Proposed is what followed it, as far as the row goes. These are the
rules of vLLM's n-gram proposer, and those of the draft workers that look up on the CPU.

Arguments, the same for every form of the kernel
    token_ids  [B, L] int32; row b holds lengths[b] committed ids, then anything
    lengths    [B] int32, in [0, L]
    depths     [B] int32, ids to propose at most
    shortest   of the runs to look up, at least 1
    longest    of them
    width      of the result; depths beyond it count as this
"""

from __future__ import annotations

from typing import NamedTuple

import torch

from outrider_kernels.contracts import PADDING_ID


class Proposals(NamedTuple):
    """What B rows propose."""

    proposed: torch.Tensor
    """[B, width] int32, the unused rest of a row holds `PADDING_ID`."""
    counts: torch.Tensor
    """[B] int32, ids proposed in each row."""


def look_up_reference(
    token_ids: torch.Tensor, lengths: torch.Tensor, depths: torch.Tensor, shortest: int, longest: int, width: int
) -> Proposals:
    """The rules of this module, row by row; slow and plain."""
    found = [
        _look_up_row(row[:length], min(depth, width), shortest, longest)
        for row, length, depth in zip(token_ids.tolist(), lengths.tolist(), depths.tolist(), strict=True)
    ]
    padded = [ids + [PADDING_ID] * (width - len(ids)) for ids in found]
    counts = torch.tensor([len(ids) for ids in found], dtype=torch.int32)
    return Proposals(torch.tensor(padded, dtype=torch.int32).view(len(found), width), counts)


def _look_up_row(ids: list[int], depth: int, shortest: int, longest: int) -> list[int]:
    for length in range(longest, shortest - 1, -1):
        for end in range(length, len(ids)):
            if ids[end - length : end] == ids[len(ids) - length :]:
                return ids[end : end + depth]
    return []
