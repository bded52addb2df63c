"""The rule of `outrider_kernels.ratio_verify` in plain Python: the specification. Fast forms must equal it.

Laws are mappings from ids to whole masses, so that a test can compute exact chances out of the same parts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate

import numpy as np
import torch

from outrider_kernels.arguments import GREEDY_BELOW, check_arguments, check_changes
from outrider_kernels.changed_logits_reference import changed_logits_reference
from outrider_kernels.contracts import PADDING_ID, SamplingRows, VerifyResult, VerifyRows
from outrider_kernels.draft_rows import DraftRows, check_draft_rows
from outrider_kernels.draws import FIRST_TEST_PURPOSE, TOKEN_PURPOSE, below, draw, unit
from outrider_kernels.logits_rows import LogitsRows, stack_changes
from outrider_kernels.mass import MASS_ONE, masses
from outrider_kernels.reference import kept_ids, refuse_bad

Law = Mapping[int, int]
"""Whole masses by id."""


def token_law(logits_row: torch.Tensor, temperature: float, top_k: int, top_p: float, min_p: float) -> Law:
    """The target's law of one position, by ascending id; empty where every logit is -inf."""
    logits = logits_row.detach().to("cpu", torch.float32).double()
    if logits.max() == -torch.inf:
        return {}
    if temperature < GREEDY_BELOW:
        return {int((logits == logits.max()).nonzero()[0]): int(MASS_ONE)}
    inverse = 1.0 / temperature
    kept = kept_ids(logits, inverse, top_k, top_p, min_p)
    return dict(zip(kept.tolist(), masses((logits[kept] - logits.max()) * inverse).tolist(), strict=True))


def draft_law(token: int, weights: Law, total: int) -> Law:
    """The drafter's law in the unit of a target's law of that total; no weights say that the token was certain."""
    if not weights:
        return {token: total}
    whole = float(sum(weights.values()))
    return {listed: int(float(weight) * float(total) / whole) for listed, weight in weights.items()}


def survivals(laws: Sequence[Law], drafts: Sequence[Law], proposed: Sequence[int]) -> list[float]:
    """[k + 1] p_0 .. p_k of the contract."""
    ratios = (float(law.get(x, 0)) / float(draft[x]) for law, draft, x in zip(laws, drafts, proposed, strict=False))
    return list(accumulate(ratios, lambda before, ratio: min(before * ratio, 1.0), initial=1.0))


def block_chance(law: Law, draft: Law, survival: float) -> float:
    """h_j of the contract for j < k, from p_j and the laws of the next id."""
    if survival >= 1.0:
        return 1.0
    unlisted, excess = sum(law.values()), 0
    for token, drawn in draft.items():
        unlisted -= law.get(token, 0)
        excess += int(max(survival * float(law.get(token, 0)) - float(drawn), 0.0))
    rest = (survival * float(unlisted) + float(excess)) / float(sum(law.values()))
    return rest / (rest + (1.0 - survival))


def rest_of(law: Law, draft: Law, survival: float) -> Law:
    """What a token is drawn from where a row stops before its last proposed id."""
    taken = {x: drawn if survival >= 1.0 else int(min(float(drawn) / survival, 2.0**62)) for x, drawn in draft.items()}
    rest = {token: max(mass - taken.get(token, 0), 0) for token, mass in law.items()}
    return rest if any(rest.values()) else law


def token_from(law: Law, bits: int) -> int:
    """The id at which the sum over ascending ids first exceeds the draw."""
    threshold = below(bits, sum(law.values()))
    tokens = sorted(law)
    sums = accumulate(law[token] for token in tokens)
    return next(token for token, upto in zip(tokens, sums, strict=True) if threshold < upto)


def verify_by_ratio_reference(
    logits: torch.Tensor,
    rows: VerifyRows,
    sampling: SamplingRows,
    draft: DraftRows,
    changes: LogitsRows | None = None,
    *,
    block: bool = False,
) -> VerifyResult:
    """`outrider_kernels.ratio_verify.verify_by_ratio`, row by row. Raises ValueError likewise."""
    changes = stack_changes([None] * len(rows.first_position)) if changes is None else changes
    check_arguments(logits, rows, sampling)
    check_changes(changes, np.diff(rows.logit_starts), logits.shape[1])
    check_draft_rows(draft, rows.proposed, logits.shape[1])
    refuse_bad(logits, rows)
    accepted_counts = np.zeros(len(rows.first_position), np.int32)
    emitted = np.full(logits.shape[0], PADDING_ID, np.int32)
    for row in range(len(accepted_counts)):
        start, end = int(rows.logit_starts[row]), int(rows.logit_starts[row + 1])
        proposed = rows.proposed[start - row : end - row - 1].tolist()
        filters = [float(values[row]) for values in (sampling.temperature, sampling.top_p, sampling.min_p)]
        laws: list[Law] = []
        for step in range(end - start):
            at = changed_logits_reference(logits[start + step], changes, row, proposed[:step])
            laws.append(token_law(at, filters[0], int(sampling.top_k[row]), filters[1], filters[2]))
            if not laws[-1]:
                break
        drafts = [
            draft_law(x, _weights(draft, start - row + step), sum(laws[step].values()))
            for step, x in enumerate(proposed[: len(laws)])
        ]
        seed, position = int(sampling.seed[row]), int(rows.first_position[row])
        tests = [draw(seed, position, FIRST_TEST_PURPOSE + step) for step in range(len(proposed))]
        stop = (block_stop if block else ratio_stop)(laws, drafts, proposed, tests)
        law = laws[stop]
        if law and stop < len(proposed):
            law = rest_of(law, drafts[stop], survivals(laws, drafts, proposed[:stop])[stop] if block else 1.0)
        emitted[start : start + stop] = proposed[:stop]
        if law:
            emitted[start + stop] = token_from(law, draw(seed, position + stop, TOKEN_PURPOSE))
        accepted_counts[row] = stop
    return VerifyResult(accepted_counts, emitted)


def ratio_stop(laws: Sequence[Law], drafts: Sequence[Law], proposed: Sequence[int], tests: Sequence[int]) -> int:
    """How many proposed ids the ratio test accepts. `laws` may end early, with an empty one."""
    for step, token in enumerate(proposed):
        if not laws[step] or below(tests[step], drafts[step][token]) >= laws[step].get(token, 0):
            return step
    return len(proposed)


def block_stop(laws: Sequence[Law], drafts: Sequence[Law], proposed: Sequence[int], tests: Sequence[int]) -> int:
    """How many proposed ids block verification accepts. `laws` may end early, with an empty one."""
    depth = len(laws) - 1
    chain = survivals(laws[:depth], drafts[:depth], proposed[:depth])
    accepted = 0
    for step in range(1, depth + 1):
        chance = chain[step] if step == depth else block_chance(laws[step], drafts[step], chain[step])
        if unit(tests[step - 1]) < chance:
            accepted = step
    return accepted


def _weights(draft: DraftRows, law: int) -> Law:
    span = slice(int(draft.starts[law]), int(draft.starts[law + 1]))
    return dict(zip(draft.ids[span].tolist(), draft.weights[span].tolist(), strict=True))
