"""Which keys of `runtime_env` hold for the workers of a draft pool: what is seen from here may not be what they see."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from outrider_cluster.config.deployments import draft_deployment

OTHER_MODULES = frozenset(
    ("working_dir", "py_modules", "py_executable", "pip", "uv", "conda", "container", "image_uri", "env_vars")
)
"""Keys with which workers may import what cannot be imported here."""
OTHER_FILES = frozenset(("container", "image_uri"))
"""Keys with which workers may have files that are not here."""
WORKING_DIR = "working_dir"
"""The key with which it is known where relative paths begin, though not here."""


def env_keys(app: Mapping[str, Any], pool: str) -> frozenset[str]:
    """Keys that have a value in the `runtime_env` of an application, or of the deployment of one of its pools.

    Args:
        app: an entry of ``applications`` as the user wrote it, maybe with faults.
        pool: the pool's name.
    """
    keys = _keys(app)
    entries = app.get("deployments")
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, Mapping) and entry.get("name") == draft_deployment(pool):
            keys |= _keys(entry.get("ray_actor_options"))
    return keys


def _keys(holder: object) -> frozenset[str]:
    env = holder.get("runtime_env") if isinstance(holder, Mapping) else None
    return frozenset(str(key) for key, value in env.items() if value) if isinstance(env, Mapping) else frozenset()
