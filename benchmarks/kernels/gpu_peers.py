"""Verification by others on the same logits: vLLM's rejection sampler and FlashInfer's chain sampling, if installed.

Both start from probabilities, so that the softmax over the logits is part of their time, as it is of ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from types import SimpleNamespace
from typing import NamedTuple

import torch

from gpu_shapes import Batch


class Peer(NamedTuple):
    """Somebody else's verification of one batch."""

    name: str
    verify: Callable[[], object]


def peers(batch: Batch) -> Iterator[Peer]:
    """Those that are installed, for temperature 1 without filters."""
    if find_spec("vllm") is not None:
        yield Peer(f"vLLM {version('vllm')} rejection_sample", _vllm(batch))
    if find_spec("flashinfer") is not None:
        yield Peer(f"FlashInfer {version('flashinfer-python')} chain_speculative_sampling", _flashinfer(batch))


def _shape(batch: Batch) -> tuple[int, int]:
    """Rows and depth."""
    rows = len(batch.rows.first_position)
    return rows, len(batch.logits) // rows - 1


def _vllm(batch: Batch) -> Callable[[], object]:
    rows, depth = _shape(batch)
    device = batch.logits.device
    proposed = torch.from_numpy(batch.rows.proposed).to(device)
    ends = torch.arange(1, rows + 1, dtype=torch.int32, device=device) * depth
    settings = SimpleNamespace(
        all_greedy=False, all_random=True, temperature=torch.ones(rows, device=device), generators={}
    )

    def verify() -> object:
        sampler = import_module("vllm.v1.sample.rejection_sampler")
        probabilities = torch.softmax(batch.logits.float(), -1).view(rows, depth + 1, -1)
        bonus = torch.multinomial(probabilities[:, depth], 1).int()
        target = probabilities[:, :depth].reshape(rows * depth, -1).contiguous()
        return sampler.rejection_sample(proposed, [depth] * rows, depth, ends, None, target, bonus, settings)

    return verify


def _flashinfer(batch: Batch) -> Callable[[], object]:
    rows, depth = _shape(batch)
    proposed = torch.from_numpy(batch.rows.proposed).to(batch.logits.device).view(rows, depth)
    draft = torch.nn.functional.one_hot(proposed.long(), batch.logits.shape[1]).float()

    def verify() -> object:
        sampling = import_module("flashinfer.sampling")
        target = torch.softmax(batch.logits.float(), -1).view(rows, depth + 1, -1)
        return sampling.chain_speculative_sampling(draft, proposed, target)

    return verify
