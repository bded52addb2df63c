"""A tokenizer and a chat template without files: one id per UTF-8 byte."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from outrider_runtime.errors import InvalidRequest

VOCAB_SIZE = 257
BOS = 256


class ByteTokenizer:
    """Id i is byte i; 256 begins a text."""

    fingerprint = "b" * 64
    vocab_size = VOCAB_SIZE

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        try:
            ids = list(text.encode())
        except UnicodeEncodeError as error:
            raise InvalidRequest("text", text, "Unicode text without lone surrogates") from error
        return [BOS, *ids] if add_special_tokens else ids

    def least_tokens(self, text: str) -> int:
        return len(text.encode(errors="replace"))

    def token_bytes(self, token_id: int) -> bytes:
        return b"" if token_id == BOS else bytes([token_id])


class ByteTemplate:
    """``<role>content`` for each message, then ``<assistant>``."""

    def render(self, messages: Sequence[Mapping[str, Any]], add_generation_prompt: bool = True) -> str:
        said = "".join(f"<{message['role']}>{message['content']}" for message in messages)
        return said + "<assistant>" if add_generation_prompt else said
