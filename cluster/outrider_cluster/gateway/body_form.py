"""How a request body must be written, as far as its headers say: JSON, in UTF-8, not compressed.

A body without a type is taken for JSON: many small clients send none. A wrong type is refused, not overlooked: what web
pages may send to any address without asking first (forms, plain text) never reaches a model, and nobody wonders why
``curl -d`` without a header works here and nowhere else.
"""

from __future__ import annotations

from starlette.datastructures import Headers

from outrider_cluster.gateway.errors import JSON_MEDIA, UnsupportedMedia

_CHARSETS = ("utf-8", "utf8")
_TYPE_RULE = f"{JSON_MEDIA} (with curl: -H 'Content-Type: {JSON_MEDIA}')"


def check_form(headers: Headers) -> None:
    """Refuse a body by its headers.

    Raises:
        UnsupportedMedia: it says that it is no JSON, not in UTF-8, or compressed.
    """
    for value in headers.getlist("content-encoding"):
        if value.strip().lower() not in ("", "identity"):
            raise UnsupportedMedia("Content-Encoding", value, "none: send the body as it is, not compressed")
    for value in headers.getlist("content-type"):
        _check_type(value)


def _check_type(value: str) -> None:
    media, *parameters = (part.strip().lower() for part in value.split(";"))
    if media != JSON_MEDIA:
        raise UnsupportedMedia("Content-Type", value, _TYPE_RULE)
    for parameter in parameters:
        name, _, charset = parameter.partition("=")
        if name.strip() == "charset" and charset.strip().strip('"') not in _CHARSETS:
            raise UnsupportedMedia("Content-Type", value, f"{JSON_MEDIA} in the charset utf-8")
