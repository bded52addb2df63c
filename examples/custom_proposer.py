"""A drafting method of your own: copy this file, change `propose`, and name the class in the config.

    draft_pools:
      - {name: mine, method: custom_class, model: custom_proposer.Dictionary, options: {phrases: [[5, 6, 7], [5, 8]]}}

The file must be importable where the draft workers run: install it, or name its folder beside the application's
`import_path`, as a URI and with an absolute path:

    runtime_env: {working_dir: "local:///absolute/path/to/folder"}

Nothing you propose can change what is generated, only how fast: docs/proposers.md.
"""

from __future__ import annotations

from collections.abc import Sequence

from outrider_draft.base_proposer import BaseProposer, ProposerSetup
from outrider_draft.proposer import Context, ProposalRequest, ProposedTokens, SessionFacts
from outrider_wire.drafting import CloseOutcome


class Dictionary(BaseProposer):
    """Completes phrases that it was given: proposes the rest of the one that the last committed ids begin.

    Args:
        setup: `options["phrases"]` is a list of lists of token ids; earlier ones go first.
    """

    def __init__(self, setup: ProposerSetup) -> None:
        super().__init__(setup)
        self._phrases = [tuple(phrase) for phrase in setup.options.get("phrases", [])]
        self._lengths: dict[int, int] = {}
        """Committed ids of each session: state of your own is kept by handle, and freed in `close`."""

    def open(self, sessions: Sequence[SessionFacts]) -> None:
        """Sessions begin; no ids yet."""
        for facts in sessions:
            self._lengths[facts.handle] = 0

    def commit(self, contexts: Sequence[Context]) -> None:
        """Ids were committed. A good place for work that `propose` then need not do."""
        for context in contexts:
            self._lengths[context.handle] = len(context.token_ids)

    def propose(self, batch: Sequence[ProposalRequest]) -> Sequence[ProposedTokens]:
        """One answer for each request, in order, of at most `depth` ids."""
        return [ProposedTokens(self._rest_of_phrase(request)) for request in batch]

    def close(self, handle: int, outcome: CloseOutcome) -> None:
        """A session is over; `outcome` says whether its output is complete."""
        del self._lengths[handle]

    def state_bytes(self, length: int) -> int:
        """Memory that a session takes here, so that the worker can keep within `max_memory_bytes`."""
        return 64

    def _rest_of_phrase(self, request: ProposalRequest) -> tuple[int, ...]:
        last = tuple(request.context.token_ids[-32:].tolist())
        for phrase in self._phrases:
            for begun in range(min(len(phrase) - 1, len(last)), 0, -1):
                if last[-begun:] == phrase[:begun]:
                    return phrase[begun : begun + request.depth]
        return ()
