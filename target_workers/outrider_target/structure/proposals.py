"""Proposals as far as a prescribed form admits them: what it rejects anyway is not worth a forward pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from outrider_target.drafting.speculator import Proposal
from outrider_target.scheduler import Row


def within_forms(rows: Sequence[Row], proposals: Mapping[int, Proposal]) -> dict[int, Proposal]:
    """Proposals by sequence key, cut before the first id that the row's form does not let come, or that ends it.

    Where that id was drawn by chance, it is the last one that stays: the target rejects it itself, or ends with it, and
    what follows keeps its law. To drop an id for what it is would bend it.
    """
    kept = dict(proposals)
    for row in rows:
        sequence = row.sequence
        proposal = kept.get(sequence.key)
        if proposal is None or sequence.constraint is None:
            continue
        legal = sequence.constraint.legal(proposal.token_ids)
        is_drawn = any(law.token_ids for law in proposal.draft_laws[legal : legal + 1])
        if count := legal + is_drawn:
            laws = proposal.draft_laws[:count]
            kept[sequence.key] = replace(proposal, token_ids=proposal.token_ids[:count], draft_laws=laws)
        else:
            del kept[sequence.key]
    return kept
