"""Which sequences take part in the next step, with how many tokens, and who must give way.

Running sequences go first, in order of arrival. A sequence that finds no block takes blocks from the latest arrival,
which is recomputed later (ids unchanged, so drafters notice nothing). Waiting sequences join while there is room.
Proposals come last: they get the blocks that nobody's committed ids need, and no sequence ever gives way for them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from outrider_target.block_pool import BlockPool, block_key
from outrider_target.control.views import Decision
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


@dataclass(frozen=True, slots=True)
class DraftRoom:
    """Room for proposals that committed ids leave, before a step is planned."""

    by_key: Mapping[int, int]
    """Tokens by sequence, in its own last block and in free ones. Free blocks go to the earliest arrivals, as in the
    plan, so that all of this can be used at once."""
    step_tokens: int
    """Tokens of all rows together, by the step's token budget."""


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

    @property
    def decoding(self) -> list[Sequence]:
        """Running sequences that are past their prefill, in order of arrival."""
        return [sequence for sequence in self.running if sequence.is_decoding]

    def take_counts(self) -> SchedulerCounts:
        """Counts since the last call."""
        counts, self._counts = self._counts, SchedulerCounts()
        return counts

    def add(self, sequence: Sequence) -> None:
        """Queue a new sequence."""
        self.waiting.append(sequence)

    def draft_room(self, max_depth: int) -> DraftRoom:
        """Room for proposals of at most `max_depth` ids. What joins in the same step may leave less of it."""
        decoding = self.decoding
        free = self._pool.num_available - sum(self._missing_blocks(sequence, sequence.length) for sequence in decoding)
        by_key = {}
        for sequence in decoding:
            spare = -sequence.length % self._block_size
            beyond = max(0, sequence.depth_limit(max_depth) - spare)
            granted = max(0, min(free, self._blocks_for(beyond)))
            by_key[sequence.key] = spare + granted * self._block_size
            free -= granted
        return DraftRoom(by_key, max(0, self._settings.max_num_batched_tokens - len(decoding)))

    def plan(self, decision: Decision) -> list[Row]:
        """Rows of the next step within the token budget, decode rows first.

        Args:
            decision: proposed tokens per row at most; no row gets more than draft workers were asked for.
        """
        rows: list[Row] = []
        self._add_running(rows, self.decoding)
        self._wish_drafts(rows, decision)
        self._add_running(rows, [sequence for sequence in self.running if not sequence.is_decoding])
        self._admit(rows)
        for row in rows:
            if row.depth:
                self._fit_draft(row)
        return rows

    def _budget(self, rows: list[Row]) -> int:
        """Tokens that may still join `rows`."""
        return self._settings.max_num_batched_tokens - sum(row.chunk + row.depth for row in rows)

    def _add_running(self, rows: list[Row], sequences: list[Sequence]) -> None:
        budget = self._budget(rows)
        for sequence in sequences:
            if sequence.status is not SequenceStatus.RUNNING:
                continue  # preempted by an earlier row of this very plan
            if budget <= 0:
                return
            row = Row.of(sequence, budget)
            if self._reserve(row, rows):
                rows.append(row)
                budget -= row.chunk

    def _wish_drafts(self, rows: list[Row], decision: Decision) -> None:
        """Take proposals into the token budget, before chunks of prompts use it up."""
        budget = self._budget(rows)
        for row in rows:
            wanted = min(decision.depth(row.sequence.key), row.sequence.asked_depth)
            row.depth = min(row.sequence.depth_limit(wanted), budget)
            budget -= row.depth

    def _admit(self, rows: list[Row]) -> None:
        budget = self._budget(rows)
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
        while not self._grow(sequence, sequence.computed_tokens + row.chunk):
            victim = self.running[-1]
            self._preempt(victim)
            rows[:] = [other for other in rows if other.sequence is not victim]
            if victim is sequence:
                return False
        return True

    def _fit_draft(self, row: Row) -> None:
        """Blocks for the proposal of a row as far as some are left; what finds no room is cut."""
        sequence = row.sequence
        missing = self._missing_blocks(sequence, sequence.length + row.depth)
        sequence.blocks += self._pool.allocate(min(missing, self._pool.num_available)) or []
        row.depth = min(row.depth, len(sequence.blocks) * self._block_size - sequence.length)

    def _grow(self, sequence: Sequence, tokens: int) -> bool:
        blocks = self._pool.allocate(self._missing_blocks(sequence, tokens))
        if blocks is None:
            return False
        sequence.blocks += blocks
        return True

    def _missing_blocks(self, sequence: Sequence, tokens: int) -> int:
        """Blocks that a sequence lacks for so many tokens."""
        return max(0, self._blocks_for(tokens) - len(sequence.blocks))

    def _blocks_for(self, tokens: int) -> int:
        return -(-tokens // self._block_size)

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

    def settle(self, sequence: Sequence) -> None:
        """A step of a sequence is over: give back blocks that only its proposal needed, and share full ones."""
        if sequence.is_decoding:
            kept = self._blocks_for(sequence.computed_tokens)
            self._pool.release(sequence.blocks[kept:])
            del sequence.blocks[kept:]
        if self._settings.enable_prefix_caching:
            self._publish(sequence)

    def _publish(self, sequence: Sequence) -> None:
        """Share the blocks of a sequence that are full of committed, computed ids."""
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
