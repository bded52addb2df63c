"""What of the emitted ids is committed: everything up to the first end, which is found before anything is counted."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import torch

from outrider_target.drafting.speculator import Proposal, Verdict
from outrider_target.emission import Emission
from outrider_target.sequence import Sequence
from outrider_target.token_logprobs import token_logprobs
from outrider_wire.generation import Finished, FinishReason, TokenLogprobs


@dataclass(frozen=True, slots=True)
class End:
    """Why a sequence ended."""

    reason: FinishReason
    stop_token_id: int | None = None
    stop_string: str | None = None


@dataclass(frozen=True, slots=True)
class Commitment:
    """Ids that a sequence commits in a round, and its end if it was met."""

    sequence: Sequence
    token_ids: tuple[int, ...]
    end: End | None
    shown: int
    """How many of the ids are in the sequence's text already."""
    verdict: Verdict | None
    """How the round's proposal fared; None when there was none."""
    logits: torch.Tensor | None = None
    """[ids, V] as in `Emission`."""

    def logprobs(self) -> tuple[TokenLogprobs, ...]:
        """Log-probabilities of every id; none where the request asks for none."""
        if self.logits is None:
            return ()
        return token_logprobs(self.logits, np.asarray(self.token_ids), self.sequence.sampling.logprobs or 0)

    def take_text(self) -> str:
        """Text that can be shown now; takes in the ids that are not in it yet."""
        text, token_ids = self.sequence.text, self._text_token_ids
        if token_ids:
            text.push(token_ids)
        if self.end is not None:
            text.finish()
        return text.take()

    @property
    def _text_token_ids(self) -> tuple[int, ...]:
        """Ids that still have to enter the text; a stop id stays out of it unless it was asked for."""
        stopped_by_id = self.end is not None and self.end.stop_token_id is not None
        hidden = stopped_by_id and not self.sequence.sampling.include_stop_str_in_output
        return self.token_ids[self.shown : -1] if hidden else self.token_ids[self.shown :]


def cut(
    sequence: Sequence, emission: Emission, proposal: Proposal | None, eos_token_ids: Collection[int]
) -> Commitment:
    """Cut an emission at the first end-of-sequence id, stop id, stop string or limit, that token included.

    Where the request has stop strings, ids enter its text one by one here, since only the text tells where it ends.
    Accepted ids after the cut are not counted as accepted.
    """
    kept = emission.token_ids
    shown = 0
    end = None
    for count, token in enumerate(emission.token_ids, start=1):
        end = _end_by_id(sequence, token, eos_token_ids)
        if end is None and sequence.text.watches_for_stops:
            shown = count
            is_muted = sequence.output_length + count <= sequence.sampling.min_tokens
            if sequence.text.push((token,), is_muted):
                end = End(FinishReason.STOP, stop_string=sequence.text.stop_string)
        if end is None and count == sequence.remaining_tokens:
            end = End(FinishReason.LENGTH)
        if end is not None:
            kept = emission.token_ids[:count]
            break
    logits = None if emission.logits is None else emission.logits[: len(kept)]
    return Commitment(sequence, kept, end, shown, _verdict(sequence, emission, proposal, len(kept)), logits)


def _end_by_id(sequence: Sequence, token: int, eos_token_ids: Collection[int]) -> End | None:
    sampling = sequence.sampling
    if token in sampling.stop_token_ids or (token in eos_token_ids and not sampling.ignore_eos):
        return End(FinishReason.STOP, stop_token_id=token)
    return None


def _verdict(sequence: Sequence, emission: Emission, proposal: Proposal | None, kept: int) -> Verdict | None:
    if proposal is None:
        return None
    return Verdict(sequence.key, proposal.pool, len(proposal.token_ids), min(emission.accepted, kept))


def finished(sequence: Sequence, end: End) -> Finished:
    """The end of an answer as clients see it."""
    statistics = sequence.statistics
    return Finished(
        reason=end.reason,
        seed=sequence.seed,
        prompt_tokens=sequence.prompt_length,
        completion_tokens=sequence.output_length,
        cached_tokens=sequence.cached_tokens,
        stop_token_id=end.stop_token_id,
        stop_string=end.stop_string,
        speculation=statistics.summary(),
        queue_time_us=statistics.queue_time_us,
        time_to_first_token_us=statistics.time_to_first_token_us,
        generation_time_us=statistics.generation_time_us,
    )
