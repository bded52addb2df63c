"""A prescribed form and drafts drawn by chance: the answer follows the target's law within the form."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from outrider_doubles.drawing_proposer import DrawingSpeculator
from outrider_doubles.engine_bench import EOS, VOCAB_SIZE, EngineBench, toy_settings
from outrider_doubles.toy_forward import ToyForward
from scipy.stats import chisquare

from outrider_target import sequence_drafting as drafting_module
from outrider_target.acceptance_rule import AcceptanceRule
from outrider_target.drafting.speculator import Proposal
from outrider_target.scheduler import Row
from outrider_wire.draft_law import DraftLaw
from outrider_wire.generation import GenerationRequest, RejectionSampleMethod
from outrider_wire.sampling import SamplingParams

PROMPT = (3, 4, 5)
C, D, E, F, X = (ord(name) - ord("A") for name in "CDEFX")
SAMPLING = SamplingParams(temperature=1.0, regex="[CD][CDE][EF]", max_tokens=8)
FORM = ((C, D), (C, D, E), (E, F), (EOS,))
COUNT = 500
LAW = DraftLaw((D, E, X, EOS), (8, 8, 8, 1))
"""Of every proposed id, whatever came before: mostly one that the form does not let come."""
METHODS = [RejectionSampleMethod.PROBABILISTIC, RejectionSampleMethod.BLOCK]


def p_value(method: RejectionSampleMethod) -> float:
    forward = ToyForward(VOCAB_SIZE, sharpness=1.5)
    speculator = DrawingSpeculator(lambda ids: LAW, Random(4))
    bench = EngineBench(toy_settings(max_waiting=COUNT), speculator, 4, forward, AcceptanceRule(method))
    request = GenerationRequest(prompt_token_ids=PROMPT, sampling=SAMPLING)
    answers = [bench.submit(request, seed) for seed in range(COUNT)]
    bench.run(max_steps=100_000)
    assert all(answer.error is None for answer in answers)
    counts, law = Counter(tuple(answer.token_ids) for answer in answers), exact_law(forward)
    assert set(counts) <= set(law)
    return float(chisquare([counts[ids] for ids in law], [COUNT * chance for chance in law.values()]).pvalue)


def exact_law(forward: ToyForward) -> dict[tuple[int, ...], float]:
    law: dict[tuple[int, ...], float] = {(): 1.0}
    for legal in FORM:
        longer = {}
        for ids, chance in law.items():
            weights = np.exp(forward.law([*PROMPT, *ids])[list(legal)].astype(np.float64))
            longer |= {(*ids, token): chance * w for token, w in zip(legal, weights / weights.sum(), strict=True)}
        law = longer
    return law


@pytest.mark.parametrize("method", METHODS)
def test_answers_follow_the_law_within_the_form(method: RejectionSampleMethod) -> None:
    assert p_value(method) > 1e-3


@pytest.mark.parametrize("method", METHODS)
def test_dropping_a_drawn_id_because_the_form_forbids_it_would_show(
    method: RejectionSampleMethod, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut_before(rows: Sequence[Row], proposals: Mapping[int, Proposal]) -> dict[int, Proposal]:
        kept = dict(proposals)
        for row in rows:
            proposal, constraint = kept.get(row.sequence.key), row.sequence.constraint
            if proposal is not None and constraint is not None:
                legal = constraint.legal(proposal.token_ids)
                laws = proposal.draft_laws[:legal]
                kept[row.sequence.key] = replace(proposal, token_ids=proposal.token_ids[:legal], draft_laws=laws)
        return {key: proposal for key, proposal in kept.items() if proposal.token_ids}

    monkeypatch.setattr(drafting_module, "within_forms", cut_before)
    assert p_value(method) < 1e-4
