"""Judges the file of step costs that a config names, before anything that runs is touched.

Knows this machine: its files, its processors, its libraries. Which forward pass a model gets, only its target knows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from outrider_cluster.config.cluster import ClusterConfig
from outrider_cluster.config.finding import Finding, show
from outrider_runtime.errors import InvalidConfig, ModelRefused
from outrider_target.control.cost_profile import CostProfile, load_profile
from outrider_target.hardware import cpu_name
from outrider_target.settings import ModelSettings
from outrider_target.weight_version import weight_version

_PATH = ("controller", "dynamic", "profile")
_FIX = "Leave it out to measure at the start, or name a profile that was taken for this model and hardware."


def judge_profile(config: ClusterConfig, serves_here: bool) -> Iterator[Finding]:
    """What is wrong with `controller.dynamic.profile`, where the depth policy would read it.

    Args:
        config: of the cluster.
        serves_here: whether its targets will run on this machine; if not, its hardware says nothing.
    """
    given = config.depth.dynamic.profile
    if given is None or not config.depth.needs_costs:
        return
    try:
        profile = load_profile(Path(given))
        profile.model()
    except InvalidConfig as error:
        yield _finding(given, str(error).removeprefix(f"{given}: "))
        return
    differing = profile.differences(_known_here(config, profile, serves_here)) + _other_libraries(profile)
    if differing:
        yield _finding(given, f"was taken elsewhere: {'; '.join(differing)}")


def check_profile(config: ClusterConfig, serves_here: bool) -> None:
    """As `judge_profile`.

    Raises:
        InvalidConfig: naming the key, the value and the fix.
    """
    for finding in judge_profile(config, serves_here):
        raise InvalidConfig(str(finding))


def _finding(given: str, problem: str) -> Finding:
    return Finding(_PATH, problem, show(_PATH, given), None, _FIX)


def _known_here(config: ClusterConfig, profile: CostProfile, serves_here: bool) -> Mapping[str, object]:
    """Parts of the key that can be told without a target."""
    target = config.target
    known: dict[str, object] = {
        "dtype": config.model.dtype,
        "tensor_parallel_size": target.tensor_parallel_size,
        "threads": target.num_threads,
    }
    weights = _weights_here(config.model, profile.key.dtype)
    if weights is not None:
        known["model"] = weights
    if serves_here and target.device == "cpu":
        known["hardware"] = cpu_name()
    return known


def _weights_here(model: ModelSettings, dtype: str) -> str | None:
    """The fingerprint of the weights, as it would be with `dtype`; None where not all of them are on this machine."""
    from outrider_runtime.models.source import resolve_source

    try:
        folder = resolve_source(model.source, model.revision, model.cache_dir, offline=True)
        return weight_version(folder, dtype)
    except (ModelRefused, OSError):
        return None


def _other_libraries(profile: CostProfile) -> list[str]:
    """Libraries of other versions. Builds of one version (``2.13.0+cpu``) are left to the target, which asks torch."""
    differing = []
    for entry in profile.key.versions.split(", "):
        name, _, taken = entry.partition(" ")
        here = _installed(name) if name in ("torch", "numba") else None
        if here is not None and here != taken.partition("+")[0]:
            differing.append(f"{name} is {taken!r}, here it is {here!r}")
    return differing


def _installed(name: str) -> str | None:
    try:
        return version(name).partition("+")[0]
    except PackageNotFoundError:
        return None
