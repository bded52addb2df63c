"""Where a `runtime_env` may find code: URIs as Ray Serve takes them from a file. It refuses plain paths.

The rules are Ray's `parse_uri`, kept equal to the installed one by a test. Ray is not imported: checking stays fast.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias
from urllib.parse import urlsplit

from pydantic import AfterValidator

SCHEMES = ("gcs", "conda", "pip", "uv", "http", "https", "s3", "gs", "azure", "abfss", "file", "local")
"""Schemes that Ray knows; `local` is a folder that every node has already."""
ARCHIVES = (".zip", ".whl", ".tar.gz", ".tgz", ".tar.xz")
_LOCAL = "local://"
_LIKE = f"{_LOCAL}/absolute/path/of/a/folder"


def check_code_uri(uri: str) -> str:
    """The same text.

    Raises:
        ValueError: Serve would refuse it.
    """
    try:
        scheme = urlsplit(uri).scheme
    except ValueError as error:
        raise ValueError(f"is no URI ({error})") from error
    if not scheme:
        raise ValueError(f"is a path, and Serve takes only URIs, such as {_LIKE}")
    if scheme not in SCHEMES:
        raise ValueError(f"has a scheme that Ray does not know: {', '.join(SCHEMES)}")
    if scheme == "local":
        _check_local(uri)
    return uri


def _check_local(uri: str) -> None:
    path = uri[len(_LOCAL) :]
    if not uri.lower().startswith(_LOCAL) or not path.startswith("/"):
        raise ValueError(f"must be {_LIKE}")
    if path.endswith(ARCHIVES):
        raise ValueError("must be a folder: an archive is not unpacked there")


CodeUri: TypeAlias = Annotated[str, AfterValidator(check_code_uri)]
