"""How the tokens of a vocabulary spell text: the part of a tokenizer's decoder that works one token at a time.

Knows the two families of decoders that causal language models use, as written in the `decoder` entry of
tokenizer.json; refuses all others by name. Knows nothing about streams.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from outrider_runtime.errors import ModelRefused, shorten

_BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_ORDER = ("Replace", "ByteFallback", "Fuse", "Strip")


@dataclass(frozen=True, slots=True)
class ByteLevelPieces:
    """Tokens spell UTF-8 bytes, one printable character a byte (GPT-2, Llama 3, Qwen, SmolLM)."""

    def spell(self, token: str) -> bytes:
        """Bytes of a token; a token outside the byte alphabet (an added one) stands for itself."""
        try:
            return bytes([BYTE_ALPHABET[character] for character in token])
        except KeyError:
            return token.encode()


@dataclass(frozen=True, slots=True)
class ReplacedPieces:
    """Tokens spell characters after replacements; some models add one token a byte (Llama 2, Mistral, Gemma, Phi-3)."""

    replacements: tuple[tuple[str, str], ...]
    """Pattern and content, applied in order."""
    byte_fallback: bool
    """Whether tokens such as ``<0x0A>`` are bytes."""
    strip_character: str
    strip_at_start: int
    """Up to so many of `strip_character` are removed from the start of the whole text."""

    def spell(self, token: str) -> str | int:
        """Characters of a token, or the value of a byte token."""
        for pattern, content in self.replacements:
            token = token.replace(pattern, content)
        match = _BYTE_TOKEN.fullmatch(token) if self.byte_fallback else None
        return token if match is None else int(match[1], 16)


Pieces = ByteLevelPieces | ReplacedPieces


def read_pieces(decoder: dict[str, Any] | None) -> Pieces:
    """The rules behind the `decoder` entry of tokenizer.json.

    Raises:
        ModelRefused: a kind of decoder whose text cannot be streamed exactly.
    """
    steps = _steps(decoder)
    kinds = [step["type"] for step in steps]
    if kinds == ["ByteLevel"]:
        return ByteLevelPieces()
    strip = steps[-1] if "Strip" in kinds else None
    if not _is_replacing(kinds) or (strip is not None and strip["stop"] != 0):
        raise ModelRefused(f"tokenizer.json: decoder {shorten(decoder)} is neither ByteLevel nor Replace … Fuse, Strip")
    return ReplacedPieces(
        replacements=tuple(_replacement(step) for step in steps if step["type"] == "Replace"),
        byte_fallback="ByteFallback" in kinds,
        strip_character=" " if strip is None else strip["content"],
        strip_at_start=0 if strip is None else strip["start"],
    )


def _steps(decoder: dict[str, Any] | None) -> list[dict[str, Any]]:
    if decoder is None:
        return []
    return list(decoder["decoders"]) if decoder["type"] == "Sequence" else [decoder]


def _is_replacing(kinds: list[str]) -> bool:
    """Whether the steps are some of Replace…, ByteFallback, Fuse, Strip in that order, Strip only after Fuse."""
    if not set(kinds) <= set(_ORDER) or "Fuse" not in kinds:
        return False
    ranks = [_ORDER.index(kind) for kind in kinds]
    singles = [kind for kind in kinds if kind != "Replace"]
    return ranks == sorted(ranks) and len(singles) == len(set(singles))


def _replacement(step: dict[str, Any]) -> tuple[str, str]:
    pattern = step["pattern"]
    if "String" not in pattern:
        raise ModelRefused(f"tokenizer.json: decoder replaces by a regular expression: {shorten(pattern)}")
    return pattern["String"], step["content"]


def _byte_alphabet() -> dict[str, int]:
    """The byte that each character of GPT-2's alphabet stands for: printable bytes for themselves, others from 256."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + place): byte for place, byte in enumerate(others)}


BYTE_ALPHABET = _byte_alphabet()
"""The byte that each character of a byte-level vocabulary stands for."""
