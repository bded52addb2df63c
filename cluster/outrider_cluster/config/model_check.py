"""Judges what a file says of its model: the place, and what can be seen of a model from here without the network."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from outrider_cluster.config.finding import Finding, show
from outrider_cluster.config.path_form import path_problem
from outrider_runtime.errors import ModelRefused
from outrider_runtime.models.checks import check_model_folder
from outrider_runtime.models.head_counts import DEMO_HEADS, head_counts_in
from outrider_runtime.models.position_limits import DEMO_POSITIONS, positions_in
from outrider_target.settings import ModelSettings, TargetSettings

_DEMO = "demo"
_HUB_ID = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?", re.ASCII)
_PLACES = "demo, an absolute path, or a hub id"


def judge_place(model: ModelSettings) -> Iterator[Finding]:
    """Places that every replica must find in the same way, and a revision of what has none."""
    for key, place, allowed in (("source", model.source, _PLACES), ("cache_dir", model.cache_dir, "an absolute path")):
        if place is None:
            continue
        problem = path_problem(place, may_be_relative=key == "source" and not place.startswith("."))
        if problem is not None:
            yield Finding(("model", key), problem, show((), place), allowed)
        elif not place.startswith("/") and not _HUB_ID.fullmatch(place):
            yield Finding(("model", key), "is neither a path nor a hub id", show((), place), allowed)
    if model.revision is not None and (model.source == _DEMO or model.source.startswith("/")):
        yield Finding(("model", "revision"), "is for hub ids only", show((), model.revision), None, "Leave it out.")


def judge_size(model: ModelSettings, target: TargetSettings) -> Iterator[Finding]:
    """What a model that can be seen from here cannot do; others are judged when a target starts."""
    heads = DEMO_HEADS if model.source == _DEMO else head_counts_in(Path(model.source))
    refusal = None if heads is None else heads.refusal(target.tensor_parallel_size)
    if heads is not None and refusal is not None:
        sizes = ", ".join(map(str, heads.sizes))
        path = ("target", "tensor_parallel_size")
        yield Finding(path, f"does not fit the model: {refusal}", str(target.tensor_parallel_size), sizes)
    positions = DEMO_POSITIONS if model.source == _DEMO else positions_in(Path(model.source))
    if positions is not None and target.max_model_len > positions:
        problem = f"exceeds the positions that the model knows, {positions}"
        yield Finding(("target", "max_model_len"), problem, str(target.max_model_len), f"at most {positions}")


def judge_folder(model: ModelSettings) -> Iterator[Finding]:
    """A folder on this machine that no target here could serve."""
    if model.source.startswith("/"):
        try:
            check_model_folder(Path(model.source))
        except ModelRefused as refused:
            yield Finding(("model", "source"), f"cannot be served: {refused}")
