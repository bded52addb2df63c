"""Start-up probe: does a token get the same logits, bit for bit, however the work around it is cut?

It decides nothing; its answer is shown in status, metrics and responses.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from outrider_target.forward import Forward, RaggedBatch

_NUM_TOKENS = 37
_MAX_VERIFY_TOKENS = 11
_NUM_NEIGHBOURS = 5
_NEIGHBOUR_TOKENS = 64


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """Whether equal requests get equal bits in any company, and how we know."""

    exact: bool
    reason: str
    fingerprint: str
    """`logits_fingerprint`, as it was at the start."""


@dataclass(frozen=True, slots=True)
class _Row:
    """Tokens [start, end) of a text in one step."""

    text: npt.NDArray[np.int64]
    blocks: npt.NDArray[np.int32]
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Case:
    """A step that must reproduce the reference. The probed row comes after `before` other rows."""

    description: str
    row: _Row
    neighbours: tuple[_Row, ...] = ()
    before: int = 0


def probe_exactness(forward: Forward) -> ProbeResult:
    """Compare the logits of one text in one piece with those of the same text cut and accompanied in other ways.

    Args:
        forward: gets a small cache for the probe; allocate the real one afterwards.
    """
    size = forward.cache_shape.block_size
    per_text = -(-max(_NUM_TOKENS, _NEIGHBOUR_TOKENS) // size)
    num_texts = _NUM_NEIGHBOURS + 2
    forward.allocate_cache(num_texts * per_text)
    blocks = np.arange(num_texts * per_text, dtype=np.int32)[::-1].reshape(num_texts, per_text)
    text = _text(forward)
    others = np.random.default_rng(1).integers(0, forward.vocab_size, (_NUM_NEIGHBOURS, _NEIGHBOUR_TOKENS))
    neighbours = tuple(
        _Row(other, table, 0, _NEIGHBOUR_TOKENS) for other, table in zip(others, blocks[2:], strict=True)
    )
    reference = _in_one_piece(forward, blocks[0])
    fingerprint = _fingerprint(reference)
    # The other cut goes to blocks of its own: there it must write the same keys and values again.
    cases = [*_chunks(text, blocks[1]), *_verify_rows(text, blocks[1], neighbours)]
    for case in cases:
        if not torch.equal(_bits(_run(forward, case)), _bits(reference[case.row.start : case.row.end])):
            reason = f"logits differ in the last bits when a text runs {case.description}"
            return ProbeResult(False, reason, fingerprint)
    ways = f"{len(cases)} other ways to cut and accompany a text"
    return ProbeResult(True, f"logits kept all bits in {ways}", fingerprint)


def logits_fingerprint(forward: Forward, blocks: Sequence[int]) -> str:
    """Fingerprint of the logits of the probe's text, computed now, in hexadecimal.

    Targets whose fingerprints differ give the same request other tokens now and then. Those that agree may still differ
    elsewhere.

    Args:
        forward: with a cache.
        blocks: of that cache, `fingerprint_blocks` of them; overwritten.
    """
    return _fingerprint(_in_one_piece(forward, np.asarray(blocks, np.int32)))


def fingerprint_blocks(forward: Forward) -> int:
    """Cache blocks that `logits_fingerprint` needs."""
    return -(-_NUM_TOKENS // forward.cache_shape.block_size)


def _text(forward: Forward) -> npt.NDArray[np.int64]:
    return np.random.default_rng(0).integers(0, forward.vocab_size, _NUM_TOKENS)


def _in_one_piece(forward: Forward, blocks: npt.NDArray[np.int32]) -> torch.Tensor:
    return _run(forward, _Case("in one piece", _Row(_text(forward), blocks, 0, _NUM_TOKENS)))


def _chunks(text: npt.NDArray[np.int64], blocks: npt.NDArray[np.int32]) -> Iterator[_Case]:
    for start in range(0, _NUM_TOKENS, 7):
        row = _Row(text, blocks, start, min(start + 7, _NUM_TOKENS))
        yield _Case("in chunks of 7 tokens", row)


def _verify_rows(
    text: npt.NDArray[np.int64], blocks: npt.NDArray[np.int32], neighbours: tuple[_Row, ...]
) -> Iterator[_Case]:
    for count in range(1, _MAX_VERIFY_TOKENS + 1):
        row = _Row(text, blocks, _NUM_TOKENS - count, _NUM_TOKENS)
        yield _Case(f"{count} tokens at a time", row)
    yield _Case(f"beside {len(neighbours)} prefills", _Row(text, blocks, 0, _NUM_TOKENS), neighbours, before=1)
    for count in (1, 4, 9):
        for company in range(1, len(neighbours) + 1, 2):
            row = _Row(text, blocks, _NUM_TOKENS - count, _NUM_TOKENS)
            decoding = tuple(_Row(other.text, other.blocks, other.end - 1, other.end) for other in neighbours[:company])
            yield _Case(f"{count} tokens at a time beside {company} others", row, decoding, before=company // 2)


def _run(forward: Forward, case: _Case) -> torch.Tensor:
    """Logits [end - start, V] of the probed row."""
    rows = [*case.neighbours[: case.before], case.row, *case.neighbours[case.before :]]
    starts = np.cumsum([0, *(row.end - row.start for row in rows)]).astype(np.int32)
    first = int(starts[case.before])
    batch = RaggedBatch(
        token_ids=np.concatenate([row.text[row.start : row.end] for row in rows]),
        positions=np.concatenate([np.arange(row.start, row.end, dtype=np.int32) for row in rows]),
        row_starts=starts,
        block_tables=np.stack([row.blocks for row in rows]),
        logit_indices=np.arange(first, first + case.row.end - case.row.start, dtype=np.int64),
    )
    return forward.run(batch)


def _fingerprint(logits: torch.Tensor) -> str:
    return hashlib.blake2b(_bits(logits).cpu().numpy().tobytes(), digest_size=6).hexdigest()


def _bits(logits: torch.Tensor) -> torch.Tensor:
    return logits.contiguous().view(torch.int32)
