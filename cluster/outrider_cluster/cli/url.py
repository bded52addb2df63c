"""Addresses that people give on the command line."""

from __future__ import annotations

from urllib.parse import urlsplit

from outrider_cluster.cli.failure import CommandFailed


def require_url(option: str, url: str) -> str:
    """`url`, if it can be one.

    Args:
        option: that it was given with.
        url: as given.

    Raises:
        CommandFailed: it has no scheme or host of HTTP, or its port is no number.
    """
    try:
        parts = urlsplit(url)
        is_good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_good = False
    if not is_good:
        raise CommandFailed(f"{option}: got {url or 'nothing'}, expected an address such as http://127.0.0.1:8000")
    return url
