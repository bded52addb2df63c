"""What is asked for at every logit row, as one array that travels to the device in one copy."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from outrider_kernels.arguments import GREEDY_BELOW
from outrider_kernels.contracts import SamplingRows, VerifyRows
from outrider_kernels.triton_twins.tables import Kind, Setting


def row_settings(rows: VerifyRows, sampling: SamplingRows, vocab_size: int) -> npt.NDArray[np.int64]:
    """[N, 8] settings of logit rows, in the columns of `Setting`."""
    depths = np.diff(rows.logit_starts)
    owner = np.repeat(np.arange(len(depths)), depths)
    step = np.arange(len(owner)) - rows.logit_starts[owner]
    greedy = sampling.temperature < GREEDY_BELOW
    inverse = 1.0 / np.where(greedy, 1.0, sampling.temperature)
    top_k = np.where(sampling.top_k < vocab_size, sampling.top_k, 0)
    # `math.log` as in the reference: numpy's may differ in the last bit.
    log_min_p = np.array([math.log(min_p) if min_p > 0 else -math.inf for min_p in sampling.min_p], np.float64)
    filtered = (top_k > 0) | (sampling.top_p < 1) | (log_min_p > -math.inf)
    kind = np.where(greedy, Kind.GREEDY, np.where(filtered, Kind.FILTERED, Kind.NOISY))
    settings = np.empty((len(owner), len(Setting)), np.int64)
    settings[:, Setting.OWNER] = owner
    settings[:, Setting.POSITION] = rows.first_position[owner] + step
    settings[:, Setting.SEED] = sampling.seed.astype(np.uint64).view(np.int64)[owner]
    settings[:, Setting.TOP_K] = top_k[owner]
    for column, values in ((Setting.INVERSE, inverse), (Setting.TOP_P, sampling.top_p), (Setting.LOG_MIN_P, log_min_p)):
        settings[:, column] = np.asarray(values, np.float64).view(np.int64)[owner]
    settings[:, Setting.KIND] = kind[owner]
    return settings
