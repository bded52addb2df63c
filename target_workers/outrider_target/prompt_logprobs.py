"""Log-probabilities of a prompt's own tokens, collected chunk by chunk as the prompt goes through the model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from outrider_target.token_logprobs import token_logprobs
from outrider_wire.generation import GenerationRequest, TokenLogprobs


class PromptLogprobs:
    """Entries of one prompt: the entry at place p is of token p + 1, from the logits at position p.

    What was collected stays when a sequence is preempted; positions that are still wanted are computed by this very
    sequence, never taken from the prefix cache, which holds no logits.

    Args:
        prompt: its ids.
        top: likeliest ids wanted for each.
    """

    def __init__(self, prompt: Sequence[int], top: int) -> None:
        self._prompt = tuple(prompt)
        self._top = top
        self._entries: list[TokenLogprobs] = []
        self._is_taken = False

    @property
    def next_position(self) -> int | None:
        """The first position whose logits are still wanted; None when there is none."""
        return len(self._entries) if len(self._entries) < len(self._prompt) - 1 else None

    def wanted(self, first: int, count: int) -> range:
        """Those of the positions `first` to `first + count - 1` whose logits are still wanted."""
        return range(max(first, len(self._entries)), min(first + count, len(self._prompt) - 1))

    def add(self, logits: torch.Tensor) -> None:
        """Take in raw logits [M, V] of the next M wanted positions."""
        start = len(self._entries) + 1
        chosen = np.asarray(self._prompt[start : start + len(logits)], np.int64)
        self._entries += token_logprobs(logits, chosen, self._top)

    def take(self) -> tuple[TokenLogprobs, ...]:
        """All entries, once."""
        entries = () if self._is_taken else tuple(self._entries)
        self._is_taken = True
        return entries


def collector_of(request: GenerationRequest) -> PromptLogprobs | None:
    """Collects what a request asks for; nothing where another replica has delivered it with the first ids."""
    top = request.sampling.prompt_logprobs
    if top is None or request.committed_token_ids:
        return None
    return PromptLogprobs(request.prompt_token_ids or (), top)
