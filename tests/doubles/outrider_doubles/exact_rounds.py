"""The exact law of what one round emits, by going through everything that can be drawn, out of the reference's parts.

Changing one part shows what a mistake in it would cost.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch

from outrider_doubles.toy_rules import ANSWER_TOKENS, MAX_DEPTH, VOCAB_SIZE, Ints, ToyTarget, prefix_codes
from outrider_kernels.ratio_reference import Law, block_chance, draft_law, rest_of, survivals, token_law

Prefix = tuple[int, ...]
Continues = Callable[[Prefix], bool]
"""Whether an id is proposed after these."""


@dataclass(frozen=True)
class ExactRound:
    """One round after the prompt.

    Args:
        target: the target.
        drawn: [prefixes, 4] weights that proposed ids are drawn by.
        sent: [prefixes, 4] weights that the verifier is told.
        continues: whether a further id is proposed.
        block: verify as one block.
        keeps: whether an id that was drawn stays in the proposal; an honest drafter keeps all.
        rest: what a rejected row draws its token from.
    """

    target: ToyTarget
    drawn: Ints
    sent: Ints
    continues: Continues
    block: bool
    keeps: Callable[[Prefix, int], bool] = lambda prefix, token: True
    rest: Callable[[Law, Law, float], Law] = rest_of

    def joint(self) -> np.ndarray:
        """[64] law of the first three tokens, those after the round drawn from the target."""
        result: defaultdict[Prefix, float] = defaultdict(float)
        for emitted, chance in self.emissions():
            for answer, tail in self._completions(emitted[:ANSWER_TOKENS]):
                result[answer] += chance * tail
        shape = (VOCAB_SIZE,) * ANSWER_TOKENS
        return np.array([result[tuple(answer)] for answer in np.ndindex(*shape)])

    def mean_accepted(self) -> float:
        """Expected accepted ids."""
        return sum(chance * (len(emitted) - 1) for emitted, chance in self.emissions())

    def emissions(self) -> Iterator[tuple[Prefix, float]]:
        """What the round emits, each with its chance; some more than once."""
        for path, chance in self._proposals(()):
            laws = [self._law(path[:step]) for step in range(len(path) + 1)]
            drafts = [draft_law(x, self._sent(path[:step]), sum(laws[step].values())) for step, x in enumerate(path)]
            for stop, share in enumerate(self._stops(laws, drafts, path)):
                survival = survivals(laws, drafts, path[:stop])[stop] if self.block else 1.0
                tail = self.rest(laws[stop], drafts[stop], survival) if stop < len(path) else laws[stop]
                for token, mass in tail.items():
                    yield (*path[:stop], token), chance * share * mass / sum(tail.values())

    def _stops(self, laws: list[Law], drafts: list[Law], path: Prefix) -> list[float]:
        """[k + 1] chance that so many ids are accepted."""
        depth = len(path)
        if not self.block:
            tests = [min(laws[i].get(x, 0) / max(drafts[i].get(x, 0), 1e-9), 1.0) for i, x in enumerate(path)]
            return [
                float(np.prod(tests[:stop])) * (1 - tests[stop] if stop < depth else 1) for stop in range(depth + 1)
            ]
        chain = survivals(laws, drafts, path)
        tests = [block_chance(laws[i], drafts[i], chain[i]) if i < depth else chain[i] for i in range(1, depth + 1)]
        return [
            (tests[stop - 1] if stop else 1.0) * float(np.prod([1 - test for test in tests[stop:]]))
            for stop in range(depth + 1)
        ]

    def _proposals(self, prefix: Prefix) -> Iterator[tuple[Prefix, float]]:
        if len(prefix) == MAX_DEPTH or not self.continues(prefix):
            yield prefix, 1.0
            return
        weights = self.drawn[self._code(prefix)]
        for token, weight in enumerate(weights.tolist()):
            chance = weight / int(weights.sum())
            if weight and not self.keeps(prefix, token):
                yield prefix, chance
            elif weight:
                yield from ((path, chance * tail) for path, tail in self._proposals((*prefix, token)))

    def _completions(self, answer: Prefix) -> Iterator[tuple[Prefix, float]]:
        if len(answer) == ANSWER_TOKENS:
            yield answer, 1.0
            return
        for token, chance in enumerate(self.target.law[self._code(answer)].tolist()):
            yield from ((whole, chance * tail) for whole, tail in self._completions((*answer, token)))

    def _law(self, prefix: Prefix) -> Law:
        return token_law(torch.from_numpy(self.target.logits[self._code(prefix)]), 1.0, 0, 1.0, 0.0)

    def _sent(self, prefix: Prefix) -> Law:
        weights = self.sent[self._code(prefix)].tolist()
        listed = {token: weight for token, weight in enumerate(weights) if weight}
        return listed if len(listed) > 1 else {}

    def _code(self, prefix: Prefix) -> int:
        padded = np.array([[*prefix, 0]])[:, : max(len(prefix), 1)]
        return int(prefix_codes(padded, np.array([len(prefix)]))[0])
