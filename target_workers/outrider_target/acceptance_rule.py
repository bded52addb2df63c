"""By which rule a target accepts proposed tokens, and what the rule asks of draft workers. Imports no torch."""

from __future__ import annotations

from dataclasses import dataclass

from outrider_wire.generation import RejectionSampleMethod

RATIO_METHODS = (RejectionSampleMethod.PROBABILISTIC, RejectionSampleMethod.BLOCK)


@dataclass(frozen=True, slots=True)
class AcceptanceRule:
    """A rule with all that it needs."""

    method: RejectionSampleMethod = RejectionSampleMethod.COUPLED
    synthetic_rates: tuple[float, ...] = ()
    """For `synthetic`: the chance that an id is accepted after all before it were, by place in the proposal."""
    draws_drafts: bool = True
    """For the ratio rules: whether drafters may draw their ids, and then send what they drew them from."""

    @property
    def shares_noise(self) -> bool:
        """Whether proposers get the seed of the target's own noise."""
        return self.method is RejectionSampleMethod.COUPLED

    @property
    def wants_draft_laws(self) -> bool:
        """Whether ids that are drawn by chance must come with the laws that they were drawn from."""
        return self.draws_drafts and self.method in RATIO_METHODS


COUPLED_RULE = AcceptanceRule()


def rates_of_length(length: float, depth: int) -> tuple[float, ...]:
    """Chances that give a mean acceptance length (the target's own token counts) with the least variance, as in vLLM.

    Args:
        length: in [1, depth + 1].
        depth: proposed tokens per round.

    Returns:
        [depth] chances by place: 1 as often as goes, then what is left, then 0.
    """
    return tuple(min(max(length - 1 - place, 0.0), 1.0) for place in range(depth))


def rates_after_others(rates: tuple[float, ...]) -> tuple[float, ...]:
    """Chances that an id is accepted after all before it were, from chances that it and all before it are.

    Args:
        rates: never increasing, as in vLLM's `synthetic_acceptance_rates`.
    """
    before = (1.0, *rates[:-1])
    return tuple(rate / earlier if earlier > 0 else 0.0 for rate, earlier in zip(rates, before, strict=True))
