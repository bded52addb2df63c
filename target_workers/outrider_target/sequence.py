"""One choice of one request inside the target: its committed ids, its cache blocks, and what it asked for."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from outrider_target.block_pool import BlockKey
from outrider_target.logits_change import LogitsChange
from outrider_target.output_text import OutputText
from outrider_target.prompt_logprobs import PromptLogprobs
from outrider_target.sequence_statistics import SequenceStatistics
from outrider_target.structure.constraint import Constraint
from outrider_wire.generation import GenerationRequest
from outrider_wire.sampling import SamplingParams


class SequenceStatus(Enum):
    """Where a sequence stands with the scheduler."""

    WAITING = "waiting"
    RUNNING = "running"
    FINISHED = "finished"


@dataclass(slots=True, eq=False)
class Sequence:
    """Committed truth about one choice. `token_ids` only ever grows; lengths are derived from it.

    `computed_tokens` counts committed ids whose keys and values are in the cache. At least the last committed id is
    always pending: feeding it yields the logits of the next one.
    """

    key: int
    request: GenerationRequest
    seed: int
    token_ids: list[int]
    prompt_length: int
    max_length: int
    """Committed ids (prompt and output) at most."""
    text: OutputText
    change: LogitsChange
    root: BlockKey
    statistics: SequenceStatistics
    constraint: Constraint | None = None
    """Keeps the answer in its prescribed form, if there is one."""
    prompt_logprobs: PromptLogprobs | None = None
    """Collects log-probabilities of the prompt, where they are asked for."""
    status: SequenceStatus = SequenceStatus.WAITING
    computed_tokens: int = 0
    blocks: list[int] = field(default_factory=list)
    block_keys: list[BlockKey] = field(default_factory=list)
    """Keys of the full blocks of `token_ids`, grown as needed."""
    published_blocks: int = 0
    cached_tokens: int = 0
    session_open: bool = False
    """Whether draft workers hold a session for this sequence."""
    asked_depth: int = 0
    """Proposed ids that draft workers were last asked for."""

    @property
    def sampling(self) -> SamplingParams:
        """Sampling parameters of the request."""
        return self.request.sampling

    @property
    def length(self) -> int:
        """Committed ids: prompt and output."""
        return len(self.token_ids)

    @property
    def output_length(self) -> int:
        """Committed output ids."""
        return self.length - self.prompt_length

    @property
    def pending_tokens(self) -> int:
        """Committed ids that still have to go through the forward pass, at least 1."""
        return self.length - self.computed_tokens

    @property
    def first_wanted_position(self) -> int:
        """The first position whose logits are wanted; those of the last committed id always are."""
        of_prompt = None if self.prompt_logprobs is None else self.prompt_logprobs.next_position
        return self.length - 1 if of_prompt is None else of_prompt

    @property
    def remaining_tokens(self) -> int:
        """Ids that may still be committed."""
        return self.max_length - self.length

    @property
    def is_decoding(self) -> bool:
        """Whether only the last committed id is pending."""
        return self.pending_tokens == 1

    def commit(self, token_ids: tuple[int, ...], now_s: float) -> None:
        """Append ids for good. All of them but the last came out of this step's computed tokens."""
        self.token_ids += token_ids
        self.change.add(token_ids)
        if self.constraint is not None:
            self.constraint.take(token_ids)
        self.computed_tokens = self.length - 1
        self.statistics.note_tokens(now_s)

    def depth_limit(self, depth: int) -> int:
        """`depth` bounded by the request and by the ids that may still be committed, minus one."""
        wanted = self.request.speculation.max_depth
        bounded = depth if wanted is None else min(depth, wanted)
        return max(0, min(bounded, self.remaining_tokens - 1))
