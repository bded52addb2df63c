"""Arrays in the one form that kernels are compiled for; numba would compile another kernel for any other."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt

from outrider_kernels.contracts import SamplingRows, VerifyRows
from outrider_kernels.logits_rows import LogitsRows

_Number = TypeVar("_Number", bound=np.generic)


def plain(array: npt.NDArray[np.generic], dtype: type[_Number]) -> npt.NDArray[_Number]:
    """Contiguous, aligned and writeable, of the dtype; `array` itself where it is so already."""
    flags = array.flags
    if array.dtype == dtype and flags.c_contiguous and flags.aligned and flags.writeable:
        return array  # type: ignore[return-value]
    return np.array(array, dtype=dtype, order="C")


def plain_rows(rows: VerifyRows) -> VerifyRows:
    """Arrays of the rows in their one form."""
    return VerifyRows(
        plain(rows.logit_starts, np.int32), plain(rows.proposed, np.int32), plain(rows.first_position, np.int64)
    )


def plain_sampling(sampling: SamplingRows) -> SamplingRows:
    """Arrays of the sampling parameters in their one form."""
    return SamplingRows(
        plain(sampling.temperature, np.float64),
        plain(sampling.top_k, np.int32),
        plain(sampling.top_p, np.float64),
        plain(sampling.min_p, np.float64),
        plain(sampling.seed, np.uint64),
    )


def plain_changes(changes: LogitsRows) -> LogitsRows:
    """Arrays of the changes in their one form."""
    doubles = {"repetition", "presence", "frequency", "bias_values"}
    kinds = {"changed": np.bool_, "masks": np.uint32, **dict.fromkeys(doubles, np.float64)}
    return LogitsRows(**{name: plain(values, kinds.get(name, np.int32)) for name, values in changes._asdict().items()})
