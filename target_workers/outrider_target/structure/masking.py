"""Works out the masks of a step on another thread, while the forward pass runs (the library releases the lock)."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import numpy.typing as npt

from outrider_target.batch import Step

Masks = dict[int, npt.NDArray[np.uint32]]
"""By row, as in `Step.masks`."""


class Masking:
    """Starts masks before the forward pass, and hands them over after it."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="masks")  # starts with the first mask that is wanted

    def start(self, step: Step) -> Future[Masks]:
        """Begin with the masks of all rows that keep to a form. Nothing may touch their constraints before the end."""
        wanted = [index for index in step.sampling_rows if step.rows[index].sequence.constraint is not None]
        if wanted:
            return self._thread.submit(_masks, step, wanted)
        nothing: Future[Masks] = Future()
        nothing.set_result({})
        return nothing


def _masks(step: Step, wanted: list[int]) -> Masks:
    masks: Masks = {}
    for index in wanted:
        constraint = step.rows[index].sequence.constraint
        assert constraint is not None, "only rows that keep to a form are wanted"
        masks[index] = constraint.masks(step.proposed(index))
    return masks
