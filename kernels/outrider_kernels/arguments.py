"""What every form of verification asks of its arguments."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from outrider_kernels.contracts import SamplingRows, VerifyRows
from outrider_kernels.logits_rows import LogitsRows
from outrider_kernels.mass import MAX_VOCAB_SIZE

GREEDY_BELOW = 1e-5
"""Smaller temperatures count as 0: scores divided by them would swallow the noise."""
LOGIT_DTYPES = (torch.float32, torch.bfloat16, torch.float16)


def check_arguments(logits: torch.Tensor, rows: VerifyRows, sampling: SamplingRows) -> None:
    """Check shapes, kinds and ranges; values of the logits are left to `bad_rows`.

    Raises:
        ValueError: names the argument, what was expected and what was given.
    """
    if logits.ndim != 2 or logits.dtype not in LOGIT_DTYPES or not 1 <= logits.shape[1] <= MAX_VOCAB_SIZE:
        raise ValueError(
            f"expected logits [N, V] of float32, bfloat16 or float16, V in [1, {MAX_VOCAB_SIZE}], "
            f"given {list(logits.shape)} {logits.dtype}"
        )
    _check_rows(logits.shape[0], logits.shape[1], rows)
    count = len(rows.first_position)
    for name, values in sampling._asdict().items():
        if values.shape != (count,):
            raise ValueError(f"expected {name} of {count} rows, given shape {values.shape}")
    _check_range("temperature", sampling.temperature, sampling.temperature >= 0, "finite and >= 0")
    _check_range("top_k", sampling.top_k, sampling.top_k >= 0, ">= 0")
    _check_range("top_p", sampling.top_p, (sampling.top_p > 0) & (sampling.top_p <= 1), "in (0, 1]")
    _check_range("min_p", sampling.min_p, (sampling.min_p >= 0) & (sampling.min_p <= 1), "in [0, 1]")


def check_changes(changes: LogitsRows, positions: npt.NDArray[np.int32], vocab_size: int) -> None:
    """Check that the changes are those of rows with so many `positions` [B] each, over `vocab_size` ids.

    Raises:
        ValueError: names the argument, what was expected and what was given.
    """
    count = len(positions)
    for name in ("changed", "repetition", "presence", "frequency", "ending_positions"):
        if getattr(changes, name).shape != (count,):
            raise ValueError(f"expected {name} of {count} rows, given shape {getattr(changes, name).shape}")
    if not changes.changed.any():
        return
    _check_range("repetition", changes.repetition, changes.repetition > 0, "finite and above 0")
    for name in ("presence", "frequency", "bias_values"):
        _check_range(name, getattr(changes, name), np.True_, "finite")
    num_words = len(changes.word_starts) - 1
    _check_starts("word_rows", changes.word_rows, count, num_words, 0)
    _check_starts("word_starts", changes.word_starts, num_words, len(changes.word_ids), 1)
    for name in ("seen", "bias", "allowed", "ending", "recent"):
        ids = getattr(changes, f"{name}_ids")
        _check_starts(f"{name}_starts", getattr(changes, f"{name}_starts"), count, len(ids), 0)
    for name in ("seen", "bias", "allowed", "ending", "recent", "word"):
        ids = getattr(changes, f"{name}_ids")
        _check_range(f"{name}_ids", ids, (ids >= 0) & (ids < vocab_size), f"in [0, {vocab_size})")
    for name, ids_name in (("seen_counts", "seen_ids"), ("bias_values", "bias_ids")):
        if getattr(changes, name).shape != getattr(changes, ids_name).shape:
            raise ValueError(f"expected {name} as many as {ids_name}, given shape {getattr(changes, name).shape}")
    _check_starts("mask_starts", changes.mask_starts, count, len(changes.masks), 0)
    given = np.diff(changes.mask_starts)
    if np.any((given != 0) & (given != positions)):
        raise ValueError(f"expected masks for none or all of {positions.tolist()} positions, given {given.tolist()}")
    if len(changes.masks) and changes.masks.shape[1] != -(-vocab_size // 32):
        raise ValueError(f"expected masks of {-(-vocab_size // 32)} words, given {changes.masks.shape[1]}")


def check_rates(rates: npt.NDArray[np.float64]) -> None:
    """Check that these are chances, one for each place of a proposal.

    Raises:
        ValueError: says what was expected and what was given.
    """
    if rates.ndim != 1 or not np.all((rates >= 0) & (rates <= 1)):
        raise ValueError(f"expected rates in [0, 1], given {rates.tolist()}")


def _check_starts(name: str, starts: npt.NDArray[np.int32], count: int, end: int, step: int) -> None:
    if starts.shape != (count + 1,) or starts[0] != 0 or starts[-1] != end or np.any(np.diff(starts) < step):
        raise ValueError(f"expected {name} of {count}, rising from 0 to {end}, given {starts.tolist()}")


def _check_rows(num_logits: int, vocab_size: int, rows: VerifyRows) -> None:
    starts, count = rows.logit_starts, len(rows.first_position)
    if starts.shape != (count + 1,) or starts[0] != 0 or starts[-1] != num_logits or np.any(np.diff(starts) < 1):
        raise ValueError(
            f"expected logit_starts of {count} rows, rising from 0 to {num_logits} by at least 1, "
            f"given {starts.tolist()}"
        )
    if rows.proposed.shape != (num_logits - count,):
        raise ValueError(f"expected {num_logits - count} proposed ids, given shape {rows.proposed.shape}")
    inside = (rows.proposed >= 0) & (rows.proposed < vocab_size)
    _check_range("proposed", rows.proposed, inside, f"in [0, {vocab_size})")
    _check_range("first_position", rows.first_position, rows.first_position >= 0, ">= 0")


def _check_range(
    name: str, values: npt.NDArray[np.generic], valid: npt.NDArray[np.bool_] | np.bool_, expected: str
) -> None:
    finite = np.isfinite(values)
    if not np.all(valid & finite):
        raise ValueError(f"expected {name} {expected}, given {values[~(valid & finite)][0]}")
