"""How much text one token can stand for at most, where a tokenizer's definition says so.

Then a long text is known to have many tokens before anybody tokenises it. Of tokenizers that may lose any amount of
text (such that drop spaces, or make one unknown token of anything) it says nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from outrider_runtime.text.pieces import BYTE_ALPHABET

_NFC_SHRINKS = 4
"""Composed text has a third of the bytes at least (Hangul syllables of three letters); one more to be sure."""
_KEEPING = frozenset({"ByteLevel", "Digits", "Metaspace", "Punctuation", "Split", "UnicodeScripts"})
"""Pre-tokenizers that only cut, unless their `behavior` is Removed."""
_UTF8_BYTES = [byte for byte in range(256) if byte not in (0xC0, 0xC1) and byte < 0xF5]


@dataclass(frozen=True, slots=True)
class TokenReach:
    """What one token can stand for at most."""

    longest_bytes: int
    """UTF-8 bytes of a text, not counting those in `unspelled`."""
    unspelled: bytes = b""
    """Bytes that have no token: any number of them may vanish."""

    def least_tokens(self, text: str) -> int:
        """Tokens that `text` has at least."""
        spelled = text.encode(errors="replace").translate(None, delete=self.unspelled)
        return -(-len(spelled) // self.longest_bytes)


def token_reach(definition: dict[str, Any]) -> TokenReach | None:
    """The reach of a tokenizer's tokens; None where nothing is known.

    Args:
        definition: the content of tokenizer.json.
    """
    model, added = definition["model"], definition.get("added_tokens") or []
    cutters = list(_steps(definition.get("pre_tokenizer"), "pretokenizers"))
    # Characters stand for bytes here, and a byte without one is lost; elsewhere characters without a token need bytes.
    is_byte_level = any(step["type"] == "ByteLevel" for step in cutters)
    shrinks = _shrinking(definition.get("normalizer"))
    if (
        model.get("type") != "BPE"
        or shrinks is None
        or not all(step["type"] in _KEEPING and step.get("behavior") != "Removed" for step in cutters)
        or any(token["lstrip"] or token["rstrip"] for token in added)
        or not (is_byte_level or _falls_back_on_bytes(model))
    ):
        return None
    unspelled = bytes(byte for letter, byte in BYTE_ALPHABET.items() if letter not in model["vocab"])
    if is_byte_level and unspelled and shrinks > 1:
        return None
    lengths = [len(token) if is_byte_level else len(token.encode()) for token in model["vocab"]]
    longest = shrinks * max([*lengths, *(len(token["content"].encode()) for token in added)])
    return TokenReach(longest, unspelled if is_byte_level else b"")


def _steps(step: dict[str, Any] | None, inner: str) -> Iterable[dict[str, Any]]:
    """A step, or those of a sequence."""
    if step is None:
        return
    if step["type"] == "Sequence":
        for part in step[inner]:
            yield from _steps(part, inner)
    else:
        yield step


def _shrinking(normalizer: dict[str, Any] | None) -> int | None:
    """How many times longer a text can be than its normal form; None where that is not known."""
    factor = 1
    for step in _steps(normalizer, "normalizers"):
        if step["type"] == "NFC":
            factor *= _NFC_SHRINKS
        elif step["type"] == "Replace":
            pattern = step["pattern"].get("String")
            if pattern is None or len(pattern.encode()) > len(step["content"].encode()):
                return None
        elif step["type"] != "Prepend":
            return None
    return factor


def _falls_back_on_bytes(model: dict[str, Any]) -> bool:
    """Whether every byte that a text can have has a token."""
    return bool(model.get("byte_fallback")) and all(f"<0x{byte:02X}>" in model["vocab"] for byte in _UTF8_BYTES)
