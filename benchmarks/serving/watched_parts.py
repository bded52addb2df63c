"""What the step profile counts: the calls of which a step is made, and the part that each belongs to."""

from __future__ import annotations

from collections.abc import Callable
from types import MethodType

import torch

import outrider_target.lean_forward as lean
import outrider_target.lean_weights as lean_weights
import outrider_target.paged_cache as paged_cache
import outrider_target.round
from outrider_kernels.exact_linear import ExactLinear
from outrider_kernels.packed_linear import packed_product
from outrider_target.drafting.remote_speculator import RemoteSpeculator
from outrider_target.forward import Forward
from outrider_target.output_text import OutputText
from outrider_target.scheduler import Scheduler
from outrider_target.transformers_forward import TransformersForward
from stopwatch import Stopwatch

_LINEARS = "forward: linears"
_HEAD = "forward: output head"
_ATTENTION = "forward: attention kernel"
_CACHE = "forward: cache writes"
_OTHER = "forward: other operators, and Python between them"
REST = "engine: everything else (Python)"
_TALLEST_LAYER = 16
"""Times as many outputs as inputs has no linear of a layer; an output head has more."""
PARTS = (
    _LINEARS,
    _HEAD,
    _ATTENTION,
    _CACHE,
    "forward: norms and gated units",
    "forward: layouts around attention",
    _OTHER,
    "sampling and verification",
    "wire: waiting for drafts",
    "wire: handing on what was committed",
    "engine: scheduling and shared blocks",
    "engine: arrays of the step",
    "engine: text",
    REST,
)
_UNWATCHED = ExactLinear.forward


def watch_model(stopwatch: Stopwatch) -> None:
    """Have the products of weights counted that are packed from now on. Once a process, before the model is loaded."""
    stopwatch.watch(ExactLinear, "forward", _LINEARS)
    pack = packed_product

    def counted(weight: torch.Tensor, bias: torch.Tensor | None) -> Callable[[torch.Tensor], torch.Tensor]:
        label = _HEAD if weight.shape[0] > _TALLEST_LAYER * weight.shape[1] else _LINEARS
        return stopwatch.timed(pack(weight, bias), label)

    vars(lean_weights)["packed_product"] = counted


def watch_engine(stopwatch: Stopwatch, forward: Forward) -> None:
    """Have every other part of a step counted. Wraps classes: once a process, after the model was loaded."""
    if isinstance(forward, TransformersForward):
        _watch_definition(stopwatch, forward)
    else:
        _watch_lean(stopwatch)
    stopwatch.watch(outrider_target.round, "verify_step", "sampling and verification")
    stopwatch.watch(outrider_target.round, "ragged_batch", "engine: arrays of the step")
    stopwatch.watch(RemoteSpeculator, "collect", "wire: waiting for drafts")
    for name in ("open", "commit", "judge", "close"):
        stopwatch.watch(RemoteSpeculator, name, "wire: handing on what was committed")
    for name in ("plan", "settle"):
        stopwatch.watch(Scheduler, name, "engine: scheduling and shared blocks")
    for name in ("push", "take", "finish"):
        stopwatch.watch(OutputText, name, "engine: text")


def _watch_lean(stopwatch: Stopwatch) -> None:
    stopwatch.watch(lean, "attend_into", _ATTENTION)
    stopwatch.watch(lean, "rotate_and_write", _CACHE)
    for name in ("rms_norm", "add_rms_norm", "rms_norm_heads", "silu_and_multiply"):
        stopwatch.watch(lean, name, "forward: norms and gated units")
    stopwatch.watch(lean.LeanForward, "run", _OTHER)


def _watch_definition(stopwatch: Stopwatch, forward: TransformersForward) -> None:
    head = forward.model.get_output_embeddings()
    if isinstance(head, ExactLinear):
        head.forward = MethodType(_UNWATCHED, head)  # type: ignore[method-assign]
    stopwatch.watch(head, "forward", _HEAD)
    stopwatch.watch(paged_cache, "paged_attention", _ATTENTION)
    stopwatch.watch(paged_cache, "write_cache", _CACHE)
    stopwatch.watch(paged_cache.PagedAttention, "attend", "forward: layouts around attention")
    stopwatch.watch(TransformersForward, "run", _OTHER)
