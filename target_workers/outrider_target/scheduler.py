"""Which sequences take part in the next step, with how many tokens, and who must give way.

Running sequences go first, in order of arrival. A sequence that finds no block first gives up its proposals, then takes
blocks from the latest arrival, which is recomputed later (ids unchanged, so drafters notice nothing). Waiting sequences
join while there is room.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from outrider_target.block_pool import BlockPool, block_key
from outrider_target.sequence import Sequence, SequenceStatus
from outrider_target.settings import TargetSettings


@dataclass(slots=True)
class Row:
    """Part of a sequence in the coming step: `chunk` committed ids, and up to `depth` proposed ones after them."""

    sequence: Sequence
    chunk: int
    depth: int
    samples: bool
    """Whether the row reaches the end of the committed ids, so that a next id comes out of it."""

    @classmethod
    def of(cls, sequence: Sequence, budget: int) -> Row:
        """As many pending ids of a sequence as `budget` allows, without proposals."""
        chunk = min(sequence.pending_tokens, budget)
        return cls(sequence, chunk, depth=0, samples=chunk == sequence.pending_tokens)


@dataclass(slots=True)
class SchedulerCounts:
    """What happened since the counts were last taken."""

    preemptions: int = 0
    prefix_queried_tokens: int = 0
    prefix_hit_tokens: int = 0


class Scheduler:
    """Holds waiting and running sequences and the blocks of their caches. All state is committed truth."""

    def __init__(self, settings: TargetSettings, pool: BlockPool, block_size: int) -> None:
        self._settings = settings
        self._pool = pool
        self._block_size = block_size
        self.waiting: deque[Sequence] = deque()
        self.running: list[Sequence] = []
        self._counts = SchedulerCounts()

    @property
    def has_work(self) -> bool:
        """Whether a step would do anything."""
        return bool(self.waiting or self.running)

    def take_counts(self) -> SchedulerCounts:
        """Counts since the last call."""
        counts, self._counts = self._counts, SchedulerCounts()
        return counts

    def add(self, sequence: Sequence) -> None:
        """Queue a new sequence."""
        self.waiting.append(sequence)

    def plan(self, depth: int) -> list[Row]:
        """Rows of the next step within the token budget, decode rows first.

        Args:
            depth: proposed tokens per row at most, before each request's own bounds.
        """
        budget = self._settings.max_num_batched_tokens
        rows: list[Row] = []
        for sequence in sorted(self.running, key=lambda s: not s.is_decoding):
            if sequence.status is not SequenceStatus.RUNNING:
                continue  # preempted by an earlier row of this very plan
            if budget <= 0:
                break
            row = Row.of(sequence, budget)
            if row.samples and sequence.drafting:
                row.depth = min(sequence.depth_limit(depth), budget - row.chunk)
            if self._reserve(row, rows):
                rows.append(row)
                budget -= row.chunk + row.depth
        self._admit(rows, budget)
        return rows

    def _admit(self, rows: list[Row], budget: int) -> None:
        while self.waiting and budget > 0 and len(self.running) < self._settings.max_num_seqs:
            sequence = self.waiting[0]
            self._reuse_prefix(sequence)
            row = Row.of(sequence, budget)
            if not self._grow(sequence, sequence.length):
                self.free(sequence)  # room for the whole of it or nothing: half-admitted prompts would block each other
                return
            self.waiting.popleft()
            self.running.append(sequence)
            self._note_admitted(sequence)
            rows.append(row)
            budget -= row.chunk

    def _reserve(self, row: Row, rows: list[Row]) -> bool:
        """Blocks for a row, from later arrivals if need be. False when the row's own sequence had to give way."""
        sequence = row.sequence
        committed = sequence.computed_tokens + row.chunk
        if row.depth and not self._grow(sequence, committed + row.depth):
            row.depth = 0
        while not self._grow(sequence, committed):
            victim = self.running[-1]
            self._preempt(victim)
            rows[:] = [other for other in rows if other.sequence is not victim]
            if victim is sequence:
                return False
        return True

    def _grow(self, sequence: Sequence, tokens: int) -> bool:
        missing = -(-tokens // self._block_size) - len(sequence.blocks)
        if missing <= 0:
            return True
        blocks = self._pool.allocate(missing)
        if blocks is None:
            return False
        sequence.blocks += blocks
        return True

    def _preempt(self, sequence: Sequence) -> None:
        self._counts.preemptions += 1
        self.running.remove(sequence)
        self.free(sequence)
        sequence.status = SequenceStatus.WAITING
        self.waiting.appendleft(sequence)

    def remove(self, sequence: Sequence) -> None:
        """Take a sequence out for good and free all it holds. Removing twice changes nothing."""
        if sequence.status is SequenceStatus.RUNNING:
            self.running.remove(sequence)
        elif sequence.status is SequenceStatus.WAITING:
            self.waiting.remove(sequence)
        sequence.status = SequenceStatus.FINISHED
        self.free(sequence)

    def free(self, sequence: Sequence) -> None:
        """Give back the blocks of a sequence and forget what was computed."""
        self._pool.release(sequence.blocks)
        sequence.blocks = []
        sequence.computed_tokens = 0
        sequence.published_blocks = 0

    def _reuse_prefix(self, sequence: Sequence) -> None:
        """Start from published blocks, but always recompute ids whose logits are wanted, as the last one's are."""
        if not self._settings.enable_prefix_caching:
            return
        usable = sequence.first_wanted_position // self._block_size
        sequence.blocks = self._pool.find(self._keys(sequence, usable))
        sequence.published_blocks = len(sequence.blocks)
        sequence.computed_tokens = len(sequence.blocks) * self._block_size

    def _note_admitted(self, sequence: Sequence) -> None:
        sequence.status = SequenceStatus.RUNNING
        if sequence.statistics.scheduled_s is None:
            sequence.cached_tokens = min(sequence.computed_tokens, sequence.prompt_length)
            self._counts.prefix_queried_tokens += sequence.length
            self._counts.prefix_hit_tokens += sequence.computed_tokens

    def publish(self, sequence: Sequence) -> None:
        """Share the blocks of a sequence that are full of committed, computed ids."""
        if not self._settings.enable_prefix_caching:
            return
        full = sequence.computed_tokens // self._block_size
        keys = self._keys(sequence, full)
        for index in range(sequence.published_blocks, full):
            self._pool.publish(sequence.blocks[index], keys[index])
        sequence.published_blocks = max(full, sequence.published_blocks)

    def _keys(self, sequence: Sequence, count: int) -> list[bytes]:
        keys = sequence.block_keys
        while len(keys) < count:
            start = len(keys) * self._block_size
            parent = keys[-1] if keys else sequence.root
            keys.append(block_key(parent, sequence.token_ids[start : start + self._block_size]))
        return keys[:count]
