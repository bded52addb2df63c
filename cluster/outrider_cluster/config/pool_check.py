"""Judges what draft pools name outside the file: documents of a corpus, and modules with code of users.

Imports none of that code: a module that is not found here is remarked, since workers may run where it is.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from stat import S_ISREG
from typing import Any

from outrider_cluster.config.cluster import ClusterConfig
from outrider_cluster.config.code_env import OTHER_FILES, OTHER_MODULES, WORKING_DIR, env_keys
from outrider_cluster.config.finding import Finding, KeyPath, show
from outrider_cluster.config.path_form import path_problem
from outrider_draft.config import CORPUS_ENDINGS, CustomClassPoolSettings, SuffixPoolSettings

_ENDINGS = f"{', '.join(CORPUS_ENDINGS[:-1])} or {CORPUS_ENDINGS[-1]}"
_PLACE = f"an absolute path of a {_ENDINGS} file that every node with workers has"


def judge_corpora(config: ClusterConfig, app: Mapping[str, Any], served_here: bool) -> Iterator[Finding]:
    """Files of `corpus_files` that no worker could read. Paths of findings start at the application's arguments.

    Args:
        config: of the application.
        app: the application as the user wrote it.
        served_here: whether its workers run on this machine, and so should find the files here.
    """
    for i, pool in enumerate(config.draft_pools):
        if not isinstance(pool, SuffixPoolSettings):
            continue
        env = env_keys(app, pool.name)
        for j, file in enumerate(pool.corpus_files):
            problem = _form_problem(file, env)
            if problem is None and served_here and file.startswith("/") and not env & OTHER_FILES:
                problem = _read_problem(Path(file))
            if problem is not None:
                yield Finding((*_pool_path(app, i), "corpus_files", j), problem, show((), file), _PLACE)


def remark_classes(config: ClusterConfig, app: Mapping[str, Any]) -> Iterator[Finding]:
    """Classes of `custom_class` whose package is not found here, where nothing says that workers see other ones.

    Only the first name of a path is looked for, because looking for a module in a package runs the package.
    """
    for i, pool in enumerate(config.draft_pools):
        if not isinstance(pool, CustomClassPoolSettings) or env_keys(app, pool.name) & OTHER_MODULES:
            continue
        package = pool.model.partition(".")[0]
        if not _may_be_here(package):
            problem = f"{package} is not importable here, and workers need it"
            hint = "Install it where workers run, or name its folder in the application's runtime_env."
            yield Finding((*_pool_path(app, i), "model"), problem, show((), pool.model), None, hint)


def _pool_path(app: Mapping[str, Any], index: int) -> KeyPath:
    """Where a pool stands: vLLM's object is the one pool of a file that has no others."""
    args = app.get("args")
    has_pools = isinstance(args, Mapping) and args.get("draft_pools")
    return ("draft_pools", index) if has_pools else ("speculative_config",)


def _form_problem(file: str, env: frozenset[str]) -> str | None:
    """What is wrong on every machine."""
    if Path(file).suffix not in CORPUS_ENDINGS:
        return "has an ending that says nothing of its form"
    return path_problem(file, may_be_relative=WORKING_DIR in env)


def _read_problem(file: Path) -> str | None:
    """What is wrong on this machine. Nothing of the content is read."""
    try:
        if not S_ISREG(file.stat().st_mode):
            return "is no file"
        file.open("rb").close()
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    except ValueError:
        return "is no path"
    return None


def _may_be_here(package: str) -> bool:
    """Whether there is such a module or package, as far as can be told without running any of it."""
    try:
        return package in sys.modules or find_spec(package) is not None
    except (ImportError, ValueError, AttributeError):  # a finder of somebody else's that cannot tell
        return True
