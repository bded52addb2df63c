"""Loops in LLVM's language, for kernels whose loops numba would not write as they are wanted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir

_INT64 = ir.IntType(64)


def repeat(
    builder: Any, end: Any, step: Callable[[Any, list[Any]], list[Any]], before: Sequence[Any] = (), stride: int = 1
) -> list[Any]:
    """Code of `step(i, values)` for i from 0 to `end`; at least once.

    Args:
        builder: where the code goes.
        end: 64 bits; i stops before it.
        step: from a place and values to the next values, which are carried in registers.
        before: the first values.
        stride: from one i to the next.

    Returns:
        The last values.
    """
    start = builder.block
    body, after = builder.append_basic_block("steps"), builder.append_basic_block("done")
    builder.branch(body)
    builder.position_at_end(body)
    place = builder.phi(_INT64)
    place.add_incoming(_INT64(0), start)
    carried = [builder.phi(value.type) for value in before]
    for phi, value in zip(carried, before, strict=True):
        phi.add_incoming(value, start)
    stepped = step(place, carried)
    following = builder.add(place, _INT64(stride))
    place.add_incoming(following, builder.block)
    for phi, value in zip(carried, stepped, strict=True):
        phi.add_incoming(value, builder.block)
    builder.cbranch(builder.icmp_signed("<", following, end), body, after)
    builder.position_at_end(after)
    return stepped


def repeat_if_any(
    builder: Any, end: Any, step: Callable[[Any, list[Any]], list[Any]], before: Sequence[Any]
) -> list[Any]:
    """`repeat`, or nothing where `end` is 0."""
    start = builder.block
    with builder.if_then(builder.icmp_signed(">", end, _INT64(0))):
        stepped = repeat(builder, end, step, before)
        last = builder.block
    merged = [builder.phi(value.type) for value in before]
    for phi, old, new in zip(merged, before, stepped, strict=True):
        phi.add_incoming(old, start)
        phi.add_incoming(new, last)
    return merged
