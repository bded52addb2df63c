"""Blocks of the paged key-value cache: who holds which, and which full blocks can be shared.

Knows block numbers and hashes of token ids only; the tensors belong to the forward pass. A block is shared only once
all its tokens are committed and their keys and values are written, so that a reader never sees anything speculative.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Sequence

import numpy as np

BlockKey = bytes


def block_key(parent: BlockKey, token_ids: Sequence[int]) -> BlockKey:
    """Key of a full block: a digest over its parent's key and its own ids.

    Args:
        parent: key of the block before, or the sequence's root key (weights and tenant) for the first one.
        token_ids: the ids of the block.
    """
    return hashlib.blake2b(parent + np.asarray(token_ids, dtype="<i4").tobytes(), digest_size=16).digest()


def root_key(weight_version: str, tenant: str) -> BlockKey:
    """Root of a sequence's block keys: blocks are never shared across weights or tenants."""
    return hashlib.blake2b(f"{weight_version}\0{tenant}".encode(), digest_size=16).digest()


class BlockPool:
    """All blocks of one cache. Its truth is committed: nothing here knows of proposals.

    A block is free (nobody holds it, contents forgotten), held (by one or more sequences), or idle (nobody holds it,
    but it is published and may be found again). When free ones run out, idle ones are taken, least recently used first.
    """

    def __init__(self, num_blocks: int) -> None:
        self.num_blocks = num_blocks
        self._free = list(range(num_blocks - 1, -1, -1))
        self._holders = [0] * num_blocks
        self._key_of: dict[int, BlockKey] = {}
        self._published: dict[BlockKey, int] = {}
        self._idle: OrderedDict[int, None] = OrderedDict()

    @property
    def num_available(self) -> int:
        """Blocks that `allocate` could hand out now."""
        return len(self._free) + len(self._idle)

    @property
    def usage(self) -> float:
        """Share of blocks held by sequences, in [0, 1]."""
        return 1.0 - self.num_available / self.num_blocks

    def allocate(self, count: int) -> list[int] | None:
        """Take `count` blocks, or None (and nothing taken) when there are not enough."""
        if count > self.num_available:
            return None
        return [self._take() for _ in range(count)]

    def _take(self) -> int:
        if self._free:
            block = self._free.pop()
        else:
            block, _ = self._idle.popitem(last=False)
            del self._published[self._key_of.pop(block)]
        self._holders[block] = 1
        return block

    def find(self, keys: Sequence[BlockKey]) -> list[int]:
        """Hold and return the longest run of published blocks that starts with the first key."""
        found: list[int] = []
        for key in keys:
            block = self._published.get(key)
            if block is None:
                break
            self._hold(block)
            found.append(block)
        return found

    def _hold(self, block: int) -> None:
        self._idle.pop(block, None)
        self._holders[block] += 1

    def publish(self, block: int, key: BlockKey) -> None:
        """Let others find a held, full block. The first block published under a key stays the one that is found."""
        assert self._holders[block] > 0, "only held blocks are published"
        if key not in self._published and block not in self._key_of:
            self._published[key] = block
            self._key_of[block] = key

    def release(self, blocks: Sequence[int]) -> None:
        """Give blocks back, last one first, so that the start of a prompt stays findable longest."""
        for block in reversed(blocks):
            self._holders[block] -= 1
            assert self._holders[block] >= 0, "a block was released twice"
            if self._holders[block] == 0:
                self._retire(block)

    def _retire(self, block: int) -> None:
        if block in self._key_of:
            self._idle[block] = None
        else:
            self._free.append(block)
