"""SuffixDecoding as a proposer: what followed the last ids in this session and in finished outputs of its tenant.

The rules are in `suffix_rules`, the search in `suffix_search`, `suffix_reference` states both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from outrider_draft.proposer import Context, CorpusFacts, IdArray, ProposalRequest, ProposedTokens, SessionFacts
from outrider_draft.suffix_corpus import CorpusSize, SuffixCorpus, size_for
from outrider_draft.suffix_index import SuffixIndex, index_bytes
from outrider_draft.suffix_rules import SuffixRules
from outrider_draft.suffix_search import Query, search_batch
from outrider_wire.drafting import CloseOutcome

_EVERYBODY = ""
"""The tenant of all outputs where tenants share."""
_FEWEST_OWNERS = 1024
_NOBODY = 0
"""Owner of no document."""


def _no_documents() -> Sequence[IdArray]:
    return ()


@dataclass(frozen=True, slots=True)
class Remembering:
    """What sessions may learn from besides themselves."""

    size: CorpusSize | None = None
    """Finished outputs to remember; None remembers none."""
    share_tenants: bool = False
    """Whether outputs of one tenant help others."""
    documents: Callable[[], Sequence[IdArray]] = _no_documents
    """Reads what everybody may learn from, each [n] int32. Called once, before the first proposal; may raise."""


@dataclass(slots=True)
class _Session:
    index: SuffixIndex
    prompt_length: int
    tenant: str


class SuffixProposer:
    """Proposes what followed the last ids before. Sees only what its tenant's requests produced, unless told to share.

    Args:
        rules: how far a proposal may go.
        remembering: what sessions may learn from besides themselves.
        hash_seed: any 64 bits that clients cannot guess.
    """

    def __init__(self, rules: SuffixRules, remembering: Remembering, hash_seed: int) -> None:
        self._rules = rules
        self._seed = np.uint64(hash_seed)
        self._remembering = remembering
        self._sessions: dict[int, _Session] = {}
        self._corpus = None if remembering.size is None else SuffixCorpus(remembering.size, self._seed)
        self._preloaded: SuffixCorpus | None = None
        self._owners: dict[str, int] = {}
        self._last_owner = _NOBODY

    @property
    def weight_version(self) -> str:
        """Empty: there are no weights."""
        return ""

    @property
    def corpora(self) -> list[SuffixCorpus]:
        """What sessions may learn from besides themselves."""
        return [corpus for corpus in (self._corpus, self._preloaded) if corpus is not None]

    def _preload(self) -> None:
        """Remember documents that every tenant may see, besides finished outputs and never evicted."""
        documents = self._remembering.documents()
        if not documents:
            return
        size = size_for(sum(map(len, documents)), len(documents))
        corpus = SuffixCorpus(size, self._seed, is_owned=False)
        for ids in documents:
            corpus.add(ids, _NOBODY)
        corpus.settle()
        self._preloaded = corpus

    def clear_corpus(self) -> None:
        """Forget all finished outputs, and what was preloaded."""
        self._preloaded = None
        self._owners.clear()
        if self._corpus is not None:
            self._corpus.clear()

    def corpus_facts(self) -> CorpusFacts:
        """How much is remembered now."""
        corpora = self.corpora
        return CorpusFacts(
            documents=sum(map(len, corpora)),
            token_ids=sum(corpus.held_ids for corpus in corpora),
            held_bytes=sum(corpus.held_bytes for corpus in corpora),
            evicted_documents=0 if self._corpus is None else self._corpus.evicted_documents,
        )

    def warm_up(self) -> None:
        """Read documents; compile, or load what an earlier process compiled.

        Raises:
            InvalidConfig: documents cannot be read.
        """
        self._preload()
        other = SuffixProposer(self._rules, Remembering(CorpusSize(1 << 10, 8)), 1)
        other.open([SessionFacts(1, 1, 1, 0, 0.0, 0, 1.0, "")])
        context = Context(1, np.array([1, 1], np.int32))
        other.commit([context])
        other.propose([ProposalRequest(context, 1)])
        other.close(1, CloseOutcome.FINISHED)

    def open(self, sessions: Sequence[SessionFacts]) -> None:
        """Begin sessions with empty indexes."""
        for facts in sessions:
            self._sessions[facts.handle] = _Session(SuffixIndex(self._seed), facts.prompt_length, facts.tenant)

    def commit(self, contexts: Sequence[Context]) -> None:
        """Index new ids, so that a proposal costs the same at any length."""
        sessions = [self._sessions[context.handle] for context in contexts]
        for session, context in zip(sessions, contexts, strict=True):
            session.index.extend(context.token_ids)
        self._work()

    def propose(self, batch: Sequence[ProposalRequest]) -> Sequence[ProposedTokens]:
        """Search for every session; one compiled call for all."""
        if not batch:
            return []
        sessions = [self._sessions[request.context.handle] for request in batch]
        queries = np.array([self._query(*pair) for pair in zip(sessions, batch, strict=True)], np.int64)
        own = np.array([session.index.row for session in sessions], np.int64)
        drafts = search_batch(queries, own, _rows(self.corpora), self._rules, self._seed)
        counts, ids, confidences = (array.tolist() for array in (drafts.counts, drafts.token_ids, drafts.confidences))
        return [
            ProposedTokens(tuple(row[:count]), tuple(estimates[:count]))
            for count, row, estimates in zip(counts, ids, confidences, strict=True)
        ]

    def close(self, handle: int, outcome: CloseOutcome) -> None:
        """Free the index; a finished output enters the corpus."""
        session = self._sessions.pop(handle)
        if outcome is CloseOutcome.FINISHED and self._corpus is not None:
            output = session.index.token_ids[session.prompt_length :]
            if len(output) > 1:
                self._corpus.add(output, self._owner(session.tenant))
        self._work()

    def state_bytes(self, length: int) -> int:
        """Size of the index of a session of `length` ids, in bytes."""
        return index_bytes(length)

    def held_bytes(self) -> int:
        """Size of the indexes of all sessions now, in bytes."""
        return sum(session.index.held_bytes for session in self._sessions.values())

    def _query(self, session: _Session, request: ProposalRequest) -> Query:
        return Query(self._owners.get(self._tenant(session.tenant), _NOBODY), request.depth)

    def _tenant(self, tenant: str) -> str:
        return _EVERYBODY if self._remembering.share_tenants else tenant

    def _owner(self, tenant: str) -> int:
        """The number of a tenant; never that of another one, also of one whose outputs are all forgotten."""
        tenant = self._tenant(tenant)
        if tenant not in self._owners:
            self._last_owner += 1
            self._owners[tenant] = self._last_owner
        return self._owners[tenant]

    def _work(self) -> None:
        """Go on with what waits to be remembered, and forget tenants of whom nothing is left."""
        if self._corpus is None:
            return
        self._corpus.work()
        if len(self._owners) > 2 * len(self._corpus) + _FEWEST_OWNERS:
            self._owners = {tenant: owner for tenant, owner in self._owners.items() if self._corpus.has(owner)}


def _rows(corpora: Iterable[SuffixCorpus]) -> NDArray[np.int64]:
    return np.array([corpus.row for corpus in corpora], np.int64).reshape(-1, 9)
