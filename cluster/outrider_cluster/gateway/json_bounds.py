"""How much JSON one request body may hold: counted in its bytes, before anything is built from them.

To parse and to check values takes the gateway's one thread, and so everybody's time. The bytes of a body say little
about that: four megabytes are one long text, or a million empty objects, which take a thousand times as long.
"""

from __future__ import annotations

from outrider_runtime.errors import InvalidRequest, Words

MAX_STRUCTURES = 1 << 16
"""Objects, lists and keys together. 64 KiB of schema hold fewer, and a conversation of 4096 messages in parts half."""


def check_amount(body: bytes, max_values: int) -> None:
    """Refuse a body that holds more than can be looked at while others wait.

    Args:
        body: JSON, or what claims to be: what is broken is counted as far as a parser would get, at least.
        max_values: texts, numbers, words, objects and lists at most.

    Raises:
        InvalidRequest: it holds more than `max_values` values, or more than `MAX_STRUCTURES` objects, lists and keys.
    """
    if sum(map(body.count, _MARKS)) <= min(max_values, MAX_STRUCTURES):
        return  # as nearly all bodies; marks inside texts were counted along
    plain = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    if plain.count(b'"') > 2 * (max_values + MAX_STRUCTURES):
        raise _refusal("values", max_values)
    bare = b"".join(plain.split(b'"')[::2])
    structures = bare.count(b"[") + bare.count(b"{")
    if structures + bare.count(b",") > max_values:
        raise _refusal("values", max_values)
    if structures + bare.count(b":") > MAX_STRUCTURES:
        raise _refusal("objects, lists and keys", MAX_STRUCTURES)


_MARKS = (b",", b":", b"[", b"{")


def _refusal(what: str, most: int) -> InvalidRequest:
    return InvalidRequest("body", Words(f"more than {most} {what}"), f"at most {most} {what} in one body")
