"""Paths in files that many machines and users read."""

from __future__ import annotations


def path_problem(path: str, may_be_relative: bool) -> str | None:
    """Why a path does not mean the same everywhere, if it does not.

    Args:
        path: as it was written.
        may_be_relative: whether what does not begin with a slash has a meaning here.
    """
    if path.startswith("~"):
        return "begins with ~, which is another folder for every user"
    if not path.startswith("/") and not may_be_relative:
        return "is a relative path, and replicas run in folders of their own"
    return None
