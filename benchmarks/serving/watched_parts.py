"""What the step profile counts: the calls of which a step is made, and the part that each belongs to."""

from __future__ import annotations

import outrider_target.lean_forward as lean
import outrider_target.paged_cache as paged_cache
import outrider_target.round
from outrider_kernels.exact_linear import ExactLinear
from outrider_target.drafting.remote_speculator import RemoteSpeculator
from outrider_target.forward import Forward
from outrider_target.lean_forward import LeanForward
from outrider_target.lean_weights import LeanLinear
from outrider_target.output_text import OutputText
from outrider_target.scheduler import Scheduler
from outrider_target.transformers_forward import TransformersForward
from stopwatch import Stopwatch

_LINEARS = "forward: linears"
_HEAD = "forward: output head"
_ATTENTION = "forward: attention kernel"
_CACHE = "forward: cache writes"
_NORMS = "forward: norms and gated units"
_OTHER = "forward: other operators, and Python between them"
REST = "engine: everything else (Python)"
PARTS = (
    _LINEARS,
    _HEAD,
    _ATTENTION,
    _CACHE,
    _NORMS,
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
_INSIDE = {
    "linears": _LINEARS,
    "output head": _HEAD,
    "attention": _ATTENTION,
    "cache writes": _CACHE,
    "norms and gated units": _NORMS,
}
"""What a pass counts by itself."""


def watch_engine(stopwatch: Stopwatch, forward: Forward) -> None:
    """Have every part of a step counted. Wraps classes and the model: once a process."""
    if isinstance(forward, TransformersForward):
        _watch_definition(stopwatch, forward)
    elif isinstance(forward, LeanForward):
        _watch_lean(stopwatch, forward)
    stopwatch.watch(outrider_target.round, "verify_step", "sampling and verification")
    stopwatch.watch(outrider_target.round, "ragged_batch", "engine: arrays of the step")
    stopwatch.watch(RemoteSpeculator, "collect", "wire: waiting for drafts")
    for name in ("open", "commit", "judge", "close"):
        stopwatch.watch(RemoteSpeculator, name, "wire: handing on what was committed")
    for name in ("plan", "settle"):
        stopwatch.watch(Scheduler, name, "engine: scheduling and shared blocks")
    for name in ("push", "take", "finish"):
        stopwatch.watch(OutputText, name, "engine: text")


def _watch_lean(stopwatch: Stopwatch, forward: LeanForward) -> None:
    if forward.one_pass is not None:
        stopwatch.watch_inside(LeanForward, "run", _OTHER, lambda: _spent_inside(forward))
        return
    stopwatch.watch(lean, "attend_into", _ATTENTION)
    stopwatch.watch(lean, "rotate_and_write", _CACHE)
    for name in ("rms_norm", "add_rms_norm", "rms_norm_heads", "silu_and_multiply"):
        stopwatch.watch(lean, name, _NORMS)
    stopwatch.watch(LeanForward, "run", _OTHER)
    weights = forward.weights
    for layer in weights.layers:
        for linear in (layer.projection, layer.output, layer.gate_up, layer.down):
            _watch_product(stopwatch, linear, _LINEARS)
    _watch_product(stopwatch, weights.head, _HEAD)


def _spent_inside(forward: LeanForward) -> dict[str, float]:
    """An engine allocates a cache of its own, and the pass over it is another one."""
    assert forward.one_pass is not None
    return {_INSIDE[part]: spent_s for part, spent_s in forward.one_pass.spent_s().items()}


def _watch_product(stopwatch: Stopwatch, linear: LeanLinear, label: str) -> None:
    object.__setattr__(linear, "multiply", stopwatch.timed(linear.multiply, label))


def _watch_definition(stopwatch: Stopwatch, forward: TransformersForward) -> None:
    head = forward.model.get_output_embeddings()
    for module in forward.model.modules():
        if isinstance(module, ExactLinear):
            stopwatch.watch(module, "forward", _HEAD if module is head else _LINEARS)
    stopwatch.watch(paged_cache, "paged_attention", _ATTENTION)
    stopwatch.watch(paged_cache, "write_cache", _CACHE)
    stopwatch.watch(paged_cache.PagedAttention, "attend", "forward: layouts around attention")
    stopwatch.watch(TransformersForward, "run", _OTHER)
