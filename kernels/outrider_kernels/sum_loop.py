"""LLVM code for a loop that carries sums in vector registers: what the products of a row share, whatever multiplies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir

_INT64 = ir.IntType(64)


class SumLoop:
    """Counts from 0 to `num_steps`, which is at least 1, and adds to sums that begin with 0.

    Made where the loop shall begin; what is built then, up to `end`, is its body.

    Args:
        builder: of the code.
        kind: LLVM's type of a sum, a vector of float32.
        count: how many sums there are.
        num_steps: times that the body runs, a number of 64 bits in the code.
    """

    def __init__(self, builder: Any, kind: Any, count: int, num_steps: Any) -> None:
        self._builder = builder
        self._num_steps = num_steps
        before = builder.block
        self._body = builder.append_basic_block("steps")
        self._after = builder.append_basic_block("sums")
        builder.branch(self._body)
        builder.position_at_end(self._body)
        self.step = builder.phi(_INT64)
        self.step.add_incoming(_INT64(0), before)
        self.sums = [builder.phi(kind) for _ in range(count)]
        for phi in self.sums:
            phi.add_incoming(kind([0.0] * kind.count), before)

    def end(self, added: Sequence[Any]) -> None:
        """Close the loop: `added` are the sums after a step. What is built then comes after the loop."""
        builder = self._builder
        following = builder.add(self.step, _INT64(1))
        self.step.add_incoming(following, self._body)
        for phi, value in zip(self.sums, added, strict=True):
            phi.add_incoming(value, self._body)
        builder.cbranch(builder.icmp_signed("<", following, self._num_steps), self._body, self._after)
        builder.position_at_end(self._after)


def store_vectors(builder: Any, values: Sequence[Any], address: Any, vector_bytes: int) -> None:
    """One after the other from an address on."""
    for at, value in enumerate(values):
        place = builder.inttoptr(builder.add(address, _INT64(at * vector_bytes)), value.type.as_pointer())
        builder.store(value, place, align=4)
