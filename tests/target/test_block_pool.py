from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from outrider_target.block_pool import BlockPool, block_key, root_key

NUM_BLOCKS = 6


def key(index: int) -> bytes:
    return block_key(root_key("weights", ""), [index])


class BlockPoolMachine(RuleBasedStateMachine):
    """Random holders allocate, find, publish and release; the pool never loses a block or hands one out twice."""

    def __init__(self) -> None:
        super().__init__()
        self.pool = BlockPool(NUM_BLOCKS)
        self.holders: list[list[int]] = []
        self.contents: dict[bytes, int] = {}

    @rule(count=st.integers(0, NUM_BLOCKS + 1))
    def allocate(self, count: int) -> None:
        available = self.pool.num_available
        blocks = self.pool.allocate(count)
        assert (blocks is None) == (count > available)
        if blocks:
            held = {block for holder in self.holders for block in holder}
            assert held.isdisjoint(blocks) and len(set(blocks)) == count
            self.contents = {k: b for k, b in self.contents.items() if b not in blocks}
            self.holders.append(blocks)

    @rule(data=st.data(), name=st.integers(0, 8))
    def publish(self, data: st.DataObject, name: int) -> None:
        if self.holders:
            block = data.draw(st.sampled_from(data.draw(st.sampled_from(self.holders))))
            self.pool.publish(block, key(name))
            if key(name) not in self.contents and block not in self.contents.values():
                self.contents[key(name)] = block

    @rule(names=st.lists(st.integers(0, 8), max_size=4, unique=True))
    def find(self, names: list[int]) -> None:
        expected = []
        for name in names:
            if key(name) not in self.contents:
                break
            expected.append(self.contents[key(name)])
        found = self.pool.find([key(name) for name in names])
        assert found == expected
        if found:
            self.holders.append(found)

    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        if self.holders:
            self.pool.release(self.holders.pop(data.draw(st.integers(0, len(self.holders) - 1))))

    @invariant()
    def available_and_held_add_up(self) -> None:
        held = {block for holder in self.holders for block in holder}
        assert self.pool.num_available + len(held) == NUM_BLOCKS


TestBlockPool = BlockPoolMachine.TestCase
TestBlockPool.settings = settings(max_examples=60, stateful_step_count=40)


def test_the_least_recently_used_published_block_is_taken_first_and_forgotten() -> None:
    pool = BlockPool(2)
    first, second = pool.allocate(1) or [], pool.allocate(1) or []
    pool.publish(first[0], key(1))
    pool.publish(second[0], key(2))
    pool.release(first)
    pool.release(second)
    assert pool.allocate(1) == first
    assert pool.find([key(1)]) == []
    assert pool.find([key(2)]) == second


def test_keys_differ_by_parent_ids_weights_and_tenant() -> None:
    root = root_key("w", "")
    keys = [root, root_key("v", ""), root_key("w", "t"), block_key(root, [1, 2]), block_key(root, [2, 1])]
    keys.append(block_key(keys[3], [1, 2]))
    assert len(set(keys)) == len(keys)
