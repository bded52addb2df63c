"""Exact chances of whole answers of the toy forward where two tokens may come at each place."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from outrider_doubles.toy_forward import ToyForward


def joint_of_top_two(forward: ToyForward, prompt: Sequence[int], num_tokens: int = 3) -> dict[tuple[int, ...], float]:
    """Chances of all answers of `num_tokens` at temperature 1 with top-k 2."""
    joint: dict[tuple[int, ...], float] = {(): 1.0}
    for _ in range(num_tokens):
        longer: dict[tuple[int, ...], float] = {}
        for ids, chance in joint.items():
            logits = forward.law([*prompt, *ids]).astype(np.float64)
            first, second = np.argsort(-logits)[:2].tolist()
            share = 1 / (1 + np.exp(logits[second] - logits[first]))
            longer |= {(*ids, first): chance * share, (*ids, second): chance * (1 - share)}
        joint = longer
    return joint
