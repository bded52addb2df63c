"""The proposers that a pool can name by `method`: settings and maker of each. A further proposer is a further row.

Proposers are imported only when made, so that checking a config loads no numeric library.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from outrider_draft.config import CustomClassPoolSettings, NgramPoolSettings, PoolSettings, SuffixPoolSettings
from outrider_draft.identity import WorkerIdentity
from outrider_draft.proposer import Proposer
from outrider_runtime.errors import InvalidConfig, shorten

Maker = Callable[[PoolSettings, WorkerIdentity], Proposer]


@dataclass(frozen=True, slots=True)
class Method:
    """The settings of a kind of pool, and how its proposer is made from them."""

    settings: type[PoolSettings]
    make: Maker


def _make_ngram(pool: PoolSettings, identity: WorkerIdentity) -> Proposer:
    from outrider_draft.ngram_proposer import NgramProposer

    assert isinstance(pool, NgramPoolSettings), "settings and maker belong to the same row"
    return NgramProposer(pool.lookup, hash_seed=secrets.randbits(64))


def _make_suffix(pool: PoolSettings, identity: WorkerIdentity) -> Proposer:
    from outrider_draft.corpus_files import read_corpus
    from outrider_draft.suffix_corpus import fit_corpus
    from outrider_draft.suffix_proposer import Remembering, SuffixProposer
    from outrider_draft.suffix_rules import SuffixRules

    assert isinstance(pool, SuffixPoolSettings), "settings and maker belong to the same row"
    depth, factor = pool.suffix_decoding_max_tree_depth, pool.suffix_decoding_max_spec_factor
    rules = SuffixRules(depth, factor, pool.suffix_decoding_min_token_prob)
    requests, token_ids = pool.suffix_decoding_max_cached_requests, pool.suffix_decoding_corpus_tokens
    size = None if requests == 0 or token_ids == 0 else fit_corpus(pool.max_corpus_bytes, requests, token_ids)
    documents = partial(read_corpus, pool.corpus_files, identity, pool.max_corpus_bytes)
    remembering = Remembering(size, pool.share_corpus, documents)
    return SuffixProposer(rules, remembering, hash_seed=secrets.randbits(64))


def _make_custom(pool: PoolSettings, identity: WorkerIdentity) -> Proposer:
    from outrider_draft.base_proposer import ProposerSetup
    from outrider_draft.custom_proposer import CustomProposer

    assert isinstance(pool, CustomClassPoolSettings), "settings and maker belong to the same row"
    return CustomProposer(pool.model, ProposerSetup(identity.vocab_size, identity.tokenizer_fingerprint, pool.options))


METHODS: Mapping[str, Method] = {
    "custom_class": Method(CustomClassPoolSettings, _make_custom),
    "ngram": Method(NgramPoolSettings, _make_ngram),
    "suffix": Method(SuffixPoolSettings, _make_suffix),
}


def find_method(name: object) -> Method:
    """The method of that name.

    Raises:
        InvalidConfig: there is none; the message lists those that there are.
    """
    method = METHODS.get(name) if isinstance(name, str) else None
    if method is None:
        raise InvalidConfig(f"method: got {shorten(name)}, allowed: {', '.join(sorted(METHODS))}")
    return method


def parse_pool(keys: Mapping[str, object]) -> PoolSettings:
    """Settings of one pool from its keys in a config.

    Raises:
        InvalidConfig: an unknown method or key, or a value out of bounds; each is named.
    """
    method = find_method(keys.get("method"))
    try:
        return method.settings.model_validate(dict(keys))
    except ValidationError as error:
        raise InvalidConfig("; ".join(_in_words(found) for found in error.errors())) from error


def _in_words(found: ErrorDetails) -> str:
    place = ".".join(map(str, found["loc"])) or "pool"
    return f"{place}: {found['msg'].removeprefix('Value error, ')}, got {shorten(found['input'])}"


def make_proposer(pool: PoolSettings, identity: WorkerIdentity) -> Proposer:
    """The proposer of a pool's workers.

    Raises:
        InvalidConfig: there is no such method, or a user's class cannot be had.
    """
    return find_method(pool.method).make(pool, identity)
