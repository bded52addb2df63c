"""A proposer that becomes useless when it is told to: suffix drafting whose ids are all wrong while a file exists."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from outrider_draft.base_proposer import BaseProposer, ProposerSetup
from outrider_draft.proposer import Context, ProposalRequest, ProposedTokens, SessionFacts
from outrider_draft.suffix_corpus import fit_corpus
from outrider_draft.suffix_proposer import Remembering, SuffixProposer
from outrider_draft.suffix_rules import SuffixRules
from outrider_wire.drafting import CloseOutcome

_CORPUS_BYTES, _CORPUS_DOCUMENTS = 16 << 20, 10_000
_HASH_SEED = 1


class Switched(BaseProposer):
    """Proposes like a suffix pool, or the same with every id replaced by its neighbour.

    Args:
        setup: `options["useless_while"]` is the path of the file; where it exists nothing that is proposed is right.
    """

    def __init__(self, setup: ProposerSetup) -> None:
        super().__init__(setup)
        self._switch = Path(setup.options["useless_while"])
        remembering = Remembering(fit_corpus(_CORPUS_BYTES, _CORPUS_DOCUMENTS))
        self._inner = SuffixProposer(SuffixRules(24, 1.0, 0.1), remembering, _HASH_SEED)

    def warm_up(self) -> None:
        """Compile."""
        self._inner.warm_up()

    def open(self, sessions: Sequence[SessionFacts]) -> None:
        """Sessions begin."""
        self._inner.open(sessions)

    def commit(self, contexts: Sequence[Context]) -> None:
        """Ids were committed."""
        self._inner.commit(contexts)

    def propose(self, batch: Sequence[ProposalRequest]) -> Sequence[ProposedTokens]:
        """One answer for each request, of the same length whether it is meant well or not."""
        proposals = self._inner.propose(batch)
        return [self._spoilt(proposed) for proposed in proposals] if self._switch.exists() else proposals

    def close(self, handle: int, outcome: CloseOutcome) -> None:
        """A session is over."""
        self._inner.close(handle, outcome)

    def state_bytes(self, length: int) -> int:
        """Memory that a session takes here."""
        return self._inner.state_bytes(length)

    def _spoilt(self, proposed: ProposedTokens) -> ProposedTokens:
        """Confidences are kept: the verifier must find out by itself."""
        wrong = tuple((token + 1) % self.setup.vocab_size for token in proposed.token_ids)
        return ProposedTokens(wrong, proposed.confidences)
