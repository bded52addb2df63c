"""The model that a gateway serves, as far as a gateway knows it: a name, a tokenizer and a chat template."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol


class TextTokenizer(Protocol):
    """What a gateway needs of `outrider_runtime.text.Tokenizer`. Safe to call from several threads."""

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the tokenizer, in hexadecimal."""

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        """Ids of `text`. Does not hold Python's lock while it encodes a long one."""

    def least_tokens(self, text: str) -> int:
        """Tokens that `text` has at least, known without encoding it; 0 where nothing is known."""

    def token_bytes(self, token_id: int) -> bytes:
        """What one id spells on its own."""


class MessageTemplate(Protocol):
    """What a gateway needs of `outrider_runtime.text.ChatTemplate`. Safe to call from several threads."""

    def render(self, messages: Sequence[Mapping[str, Any]], add_generation_prompt: bool = True) -> str:
        """Prompt text of a conversation; raises InvalidRequest when the template does not accept it."""


@dataclass(frozen=True, slots=True)
class ServedModel:
    """The served model, and what requests may ask for by name.

    `pools` are the draft pools of the configuration, whether or not they have live workers.
    """

    name: str
    tokenizer: TextTokenizer
    chat_template: MessageTemplate
    pools: tuple[str, ...] = ()
    latency_classes: tuple[str, ...] = ()
    is_synthetic: bool = False
    """Whether targets pretend to accept proposals, so that no text is the model's; every response says so."""

    def system_fingerprint(self, version: str, logits: Sequence[str]) -> str:
        """OpenAI's `system_fingerprint`: changes when the model, its tokenizer or our version does.

        Args:
            version: ours.
            logits: fingerprints of the targets' logits; another processor or library has others.
        """
        text = "\n".join([version, self.name, self.tokenizer.fingerprint, *logits])
        return f"fp_{hashlib.sha256(text.encode()).hexdigest()[:16]}"
