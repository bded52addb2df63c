"""Where Triton kernels can run, and arrays on the way there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from importlib.util import find_spec

import numpy as np
import numpy.typing as npt
import torch


def check_device(tensor: torch.Tensor) -> None:
    """Check that kernels can be run on a tensor where it lies.

    Raises:
        ValueError: it is not on a GPU, and kernels are not interpreted.
        RuntimeError: triton is not installed.
    """
    if find_spec("triton") is None:
        raise RuntimeError("expected triton for logits on a GPU, given none: install outrider[gpu]")
    if not tensor.is_cuda and os.environ.get("TRITON_INTERPRET") != "1":
        raise ValueError(
            f"expected logits on a GPU, given {tensor.device}: set TRITON_INTERPRET=1 to try kernels there"
        )


@contextmanager
def on_device(tensor: torch.Tensor) -> Iterator[None]:
    """Makes the tensor's GPU the one that kernels are started on; nothing for host memory."""
    if tensor.is_cuda:
        with torch.cuda.device(tensor.device):
            yield
    else:
        yield


def processors_of(tensor: torch.Tensor) -> int:
    """Multiprocessors of the tensor's GPU; 1 for host memory."""
    return _processors(tensor.device.index or 0) if tensor.is_cuda else 1


def to_device(array: npt.NDArray[np.generic], device: torch.device) -> torch.Tensor:
    """The array on a device; a copy of it, host memory included, because arrays may be read-only.

    Copies to a GPU do not wait for it.
    """
    tensor = torch.from_numpy(np.array(array, order="C"))
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor


@lru_cache
def _processors(index: int) -> int:
    return int(torch.cuda.get_device_properties(index).multi_processor_count)
