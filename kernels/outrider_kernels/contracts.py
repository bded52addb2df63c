"""What goes into and comes out of verification, with the words and shapes that every twin of a kernel keeps.

Words
    B   rows: sequences that take part in a step.
    k_b depth of row b: proposed tokens of that row, 0 or more.
    N   logit rows of the step: sum over b of (k_b + 1).
    V   size of the target's vocabulary.

    *proposed* ids come from a drafter; *accepted* ids are the prefix of them that the target agrees with; *emitted* ids
    are the accepted ones plus the target's own next one (the correction or the bonus).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class SamplingRows(NamedTuple):
    """Sampling parameters of B rows, one array each."""

    temperature: npt.NDArray[np.float64]
    """[B] 0 is greedy."""
    top_k: npt.NDArray[np.int32]
    """[B] 0 keeps all."""
    top_p: npt.NDArray[np.float64]
    """[B] 1 keeps all."""
    min_p: npt.NDArray[np.float64]
    """[B] 0 keeps all."""
    seed: npt.NDArray[np.uint64]
    """[B] noise seed of the request."""


class VerifyRows(NamedTuple):
    """Proposals of B rows, ragged."""

    logit_starts: npt.NDArray[np.int32]
    """[B + 1] row b owns logits[logit_starts[b] : logit_starts[b + 1]], which are k_b + 1 rows."""
    proposed: npt.NDArray[np.int32]
    """[N - B] proposed ids, row after row; row b starts at logit_starts[b] - b. Range-checked by the caller."""
    first_position: npt.NDArray[np.int64]
    """[B] absolute index in prompt + output of the first token that the row emits."""


class VerifyResult(NamedTuple):
    """What B rows emit."""

    accepted_counts: npt.NDArray[np.int32]
    """[B] accepted proposed ids, in [0, k_b]."""
    emitted: npt.NDArray[np.int32]
    """[N] row b emits accepted_counts[b] + 1 ids from emitted[logit_starts[b]] on; the rest holds PADDING_ID."""


PADDING_ID = -1
"""Fills unused places of `VerifyResult.emitted`; never a token."""
