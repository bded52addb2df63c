"""Tables of logits chosen to part kernels from their references, and rows that propose ids out of them."""

from __future__ import annotations

import numpy as np
import torch

from outrider_kernels.contracts import VerifyRows
from outrider_kernels.draft_rows import MAX_WEIGHT, DraftRows


def logit_table(vocab_size: int, count: int, kind: str, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Logits [count, vocab_size]."""
    source = torch.Generator().manual_seed(vocab_size)
    logits = torch.randn(count, vocab_size, generator=source) * 3
    if kind == "ties":
        logits = logits.round()
    if kind == "tail without mass":
        logits[:, vocab_size // 3 :] -= 200  # exponents below -30 have no mass, but a score
    if kind == "masked":
        masked = torch.rand(count, vocab_size, generator=source) < 0.7
        masked[:, vocab_size // 2] = False
        logits = logits.masked_fill(masked, -torch.inf)
    if kind == "equal":
        logits = torch.zeros(count, vocab_size)
    if kind == "signed zeros":
        logits = torch.where(logits > 0, 0.0, -0.0)
    if kind == "extreme":
        logits = logits.sign() * torch.finfo(torch.float32).max
    return logits.to(dtype)


def likely_rows(source: np.random.Generator, logits: torch.Tensor, depths: list[int]) -> VerifyRows:
    """Rows of these depths that mostly propose the likeliest id of a position, now and then any other."""
    starts = np.cumsum([0, *(depth + 1 for depth in depths)])
    likeliest = logits.float().argmax(1).numpy()
    proposed = [likeliest[start + step] for start, depth in zip(starts, depths, strict=False) for step in range(depth)]
    strays = source.integers(0, logits.shape[1], len(proposed))
    ids = np.where(source.random(len(proposed)) < 0.15, strays, np.array(proposed, np.int64))
    return VerifyRows(starts.astype(np.int32), ids.astype(np.int32), np.arange(5, 5 + 3 * len(depths), 3))


def draft_laws(source: np.random.Generator, rows: VerifyRows, vocab_size: int, most_listed: int) -> DraftRows:
    """Laws of the proposed ids of rows, every fourth of them certain; the others list up to `most_listed` ids."""
    starts, ids, weights = [0], list[int](), list[int]()
    for token in rows.proposed.tolist():
        if source.random() < 0.75:
            size = min(int(source.integers(1, most_listed + 1)), vocab_size)
            others = source.choice(vocab_size, size, replace=False)
            listed = [token, *others[others != token][: size - 1].tolist()]
            ids += listed
            weights += source.integers(1, MAX_WEIGHT + 1, len(listed)).tolist()
        starts.append(len(ids))
    return DraftRows(np.array(starts, np.int32), np.array(ids, np.int32), np.array(weights, np.int64))
