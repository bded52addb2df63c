"""Linears over weights in panels, whose rows do not depend on each other by construction: what all kernels share.

Sizes: M rows, K inputs, N outputs, P panels of some outputs each, the last one filled up with zeros. Sums are float32,
the bias is added to them, and the result is rounded once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from numba import get_num_threads

from outrider_kernels.compiling import compiled
from outrider_kernels.huge_pages import HUGE_PAGES
from outrider_kernels.number_formats_numba import Numbers, narrow, numbers_of
from outrider_kernels.row_parts import is_worth_sharing, reading_ns_per_byte

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class PanelKernel:
    """One way of multiplying rows with panels."""

    name: str
    """Of the instructions that a processor must have."""
    is_here: Callable[[], bool]
    """Whether this one has them."""
    dtypes: tuple[torch.dtype, ...]
    """Of weights, inputs and outputs."""
    width: int
    """Outputs of a panel."""
    together: int
    """Inputs that lie side by side for each output."""
    step_inputs: int
    """Inputs come in multiples of this."""
    some_panels: Callable[[Numbers, Numbers, Floats, Numbers, int, int], None]
    """Rows, all panels, bias and outputs; the first panel and the one after the last, on this thread."""
    all_panels: Callable[[Numbers, Numbers, Floats, Numbers, int], None]
    """The same for all panels, in so many parts on several threads."""
    ns_per_product: float
    """Of one thread, for many rows; for few, reading the weights is what takes time."""

    def takes(self, weight: torch.Tensor) -> bool:
        """Whether a weight can be multiplied like this here."""
        inputs = weight.shape[1]
        return weight.dtype in self.dtypes and inputs % self.step_inputs == 0 < inputs and self.is_here()


class PanelProduct:
    """`rows @ weight.T + bias`.

    Args:
        weight: [N, K] of a dtype that the kernel takes; copied.
        bias: [N] or None.
        kernel: how to multiply.

    Raises:
        ValueError: the kernel does not take the weight.
    """

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None, kernel: PanelKernel) -> None:
        if not kernel.takes(weight):
            raise ValueError(
                f"expected {' or '.join(map(str, kernel.dtypes))} [N, K], K a multiple of {kernel.step_inputs}, "
                f"on a processor with {kernel.name}, given {weight.dtype} {tuple(weight.shape)}"
            )
        self.kernel = kernel
        self._num_outputs = weight.shape[0]
        self._dtype = weight.dtype
        self.panels = _panels_of(weight, kernel.width, kernel.together)
        """[P, K / together, width * together]"""
        self.bias = np.zeros(len(self.panels) * kernel.width, np.float32)
        """[P * width]"""
        if bias is not None:
            self.bias[: self._num_outputs] = bias.float().numpy()

    def __call__(self, rows: torch.Tensor) -> torch.Tensor:
        """[M, K], contiguous, to [M, N], of the weight's dtype."""
        out = torch.empty(len(rows), self._num_outputs, dtype=self._dtype)
        inputs, outputs, threads, kernel = numbers_of(rows), numbers_of(out), get_num_threads(), self.kernel
        multiplying_ns = self.panels.size * kernel.ns_per_product * len(rows)
        one_thread_ns = max(self.panels.nbytes * reading_ns_per_byte(), multiplying_ns)
        if threads > 1 and is_worth_sharing(one_thread_ns):
            kernel.all_panels(inputs, self.panels, self.bias, outputs, threads)
        else:
            kernel.some_panels(inputs, self.panels, self.bias, outputs, 0, len(self.panels))
        return out


def _panels_of(weight: torch.Tensor, width: int, together: int) -> Numbers:
    """[P, K / together, width * together]: for some inputs, the weights of the first output, of the second, ..."""
    num_outputs, num_inputs = weight.shape
    num_panels = -(-num_outputs // width)
    filled = weight.new_zeros(num_panels * width, num_inputs)
    filled[:num_outputs] = weight
    turned = filled.view(num_panels, width, num_inputs // together, together).transpose(1, 2).contiguous()
    return HUGE_PAGES.copy(numbers_of(turned.view(num_panels, num_inputs // together, width * together)))


def putter(width: int) -> Callable[[Floats, int, int, int, Floats, Numbers], None]:
    """A function for compiled code that finishes sums of panels of `width` outputs."""

    @compiled()
    def put(sums: Floats, row: int, count: int, start: int, bias: Floats, out: Numbers) -> None:
        """Add the bias to the sums of `count` rows, and round them into `out` from `row` and output `start` on."""
        end = min(start + width, out.shape[1])
        for i in range(count):
            # Views of one dimension: with two indices in the innermost loop LLVM does not vectorise it.
            of_row, places, added = sums[i], out[row + i, start:end], bias[start:end]
            if end == start + width:
                for x in range(width):  # LLVM knows how often: else it expects longer rows, and does these slowly
                    places[x] = narrow(of_row[x] + added[x], out)
            else:
                for x in range(places.shape[0]):
                    places[x] = narrow(of_row[x] + added[x], out)

    return put
