"""How much was proposed and accepted: as an answer says it, or as the server's own counters do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import httpx
from prometheus_client.parser import text_string_to_metric_families

_ROUNDS = "vllm:spec_decode_num_drafts_total"
_PROPOSED = "vllm:spec_decode_num_draft_tokens_total"
_ACCEPTED = "vllm:spec_decode_num_accepted_tokens_total"


@dataclass(frozen=True, slots=True)
class SpeculationCounts:
    """Rounds with drafts, and tokens."""

    rounds: int
    proposed: int
    accepted: int

    @classmethod
    def of_answer(cls, statistics: Mapping[str, Any]) -> Self:
        """What `metrics.speculative_decoding` of a response says."""
        return cls(
            rounds=statistics["num_spec_steps"],
            proposed=statistics["num_draft_tokens"],
            accepted=statistics["num_accepted_draft_tokens"],
        )

    def since(self, earlier: SpeculationCounts) -> SpeculationCounts:
        """What was counted after `earlier`."""
        return SpeculationCounts(
            self.rounds - earlier.rounds, self.proposed - earlier.proposed, self.accepted - earlier.accepted
        )


async def counted_by_server(client: httpx.AsyncClient) -> SpeculationCounts | None:
    """What a server says at `/metrics` of all its answers so far; None if it has no such counters.

    Args:
        client: with the server's base URL.

    Raises:
        httpx.TransportError: it does not answer at all.
    """
    response = await client.get("/metrics")
    return None if response.is_error else _counters_in(response.text)


def _counters_in(page: str) -> SpeculationCounts | None:
    totals: dict[str, float] = {}
    try:
        for family in text_string_to_metric_families(page):
            for sample in family.samples:
                totals[sample.name] = totals.get(sample.name, 0.0) + sample.value
    except ValueError:  # a page of another kind
        return None
    if not totals.keys() >= {_ROUNDS, _PROPOSED, _ACCEPTED}:
        return None
    return SpeculationCounts(round(totals[_ROUNDS]), round(totals[_PROPOSED]), round(totals[_ACCEPTED]))
