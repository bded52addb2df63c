"""Everything that may travel, for hypothesis: each dataclass of the wire over the whole range of its fields."""

from __future__ import annotations

from hypothesis import strategies as st

from outrider_wire.draft_law import DraftLaw
from outrider_wire.drafting import (
    Chain,
    Close,
    CloseOutcome,
    Commit,
    DrafterRound,
    Hello,
    Load,
    Open,
    Refusal,
    ResyncRequest,
    VerifierRound,
)
from outrider_wire.generation import (
    Alternative,
    Finished,
    FinishReason,
    GenerationDelta,
    GenerationRequest,
    RejectionSampleMethod,
    RoundReport,
    SpeculationStatistics,
    TokenLogprobs,
)
from outrider_wire.losses import LossKind, LostWorker, PoolLosses
from outrider_wire.registry import (
    DraftLinkStatus,
    DraftMember,
    GatewayMember,
    Member,
    MemberKind,
    MemberState,
    PoolWishes,
    Snapshot,
    TargetMember,
)
from outrider_wire.sampling import SamplingParams, SpeculationOptions
from outrider_wire.scaling import Figure, ScalingDecision

u32 = st.integers(0, 2**32 - 1)
u64 = st.integers(0, 2**64 - 1)
token = st.integers(-(2**31), 2**31 - 1)
tokens = st.lists(token, max_size=5).map(tuple)
double = st.floats(allow_nan=False)
name = st.text(max_size=20)
counts = st.lists(u32, max_size=4).map(tuple)
pools = st.dictionaries(name, u32, max_size=3)


def some(item: st.SearchStrategy[object]) -> st.SearchStrategy[tuple[object, ...]]:
    """A few of `item`."""
    return st.lists(item, max_size=3).map(tuple)


hellos = st.builds(Hello, u32, name, u32, name, name, u32, name, name)
opens = st.builds(Open, u64, u32, tokens, u32, u32, u64, double, token, double, name, st.booleans(), st.booleans())
commits = st.builds(Commit, u64, u32, u32, tokens, u32, u32)
closes = st.builds(Close, u64, u32, st.sampled_from(CloseOutcome))
verifier_frames = hellos | st.builds(VerifierRound, some(opens), some(commits), some(closes))

confidences = st.lists(st.floats(width=32, allow_nan=False), max_size=4).map(tuple)
laws = some(st.builds(DraftLaw, tokens, counts))
chains = st.builds(Chain, u64, u32, u32, tokens, confidences, laws)
resyncs = st.builds(ResyncRequest, u64, u32, u32)
refusals = st.builds(Refusal, u64, u32)
loads = st.none() | st.builds(Load, u32, u32, u32)
drafter_frames = hellos | st.builds(DrafterRound, some(chains), some(resyncs), some(refusals), loads)

sampling = st.builds(
    SamplingParams,
    temperature=double,
    top_k=token,
    top_p=double,
    min_p=double,
    seed=st.none() | u64,
    max_tokens=st.none() | u32,
    ignore_eos=st.booleans(),
    stop_token_ids=tokens,
    stop=some(name),
    n=st.integers(1, 2**32 - 1),
    include_stop_str_in_output=st.booleans(),
    presence_penalty=double,
    frequency_penalty=double,
    repetition_penalty=double,
    logit_bias=st.dictionaries(token, double, max_size=3),
    allowed_token_ids=tokens,
    bad_words=some(name),
    bad_word_ids=some(tokens),
    min_tokens=u32,
    logprobs=st.none() | u32,
    json_schema=st.none() | name,
    regex=st.none() | name,
    choices=some(name),
    prompt_logprobs=st.none() | u32,
)
some_name = st.none() | st.text(min_size=1, max_size=20)
speculation = st.builds(SpeculationOptions, st.none() | u32, some_name, some_name)
requests = st.builds(
    GenerationRequest, name, name, st.none(), st.none() | tokens, sampling, speculation, name, tokens
) | st.builds(GenerationRequest, name, name, name, st.none(), sampling, speculation, name, tokens)

methods = st.sampled_from(RejectionSampleMethod)
statistics = st.builds(SpeculationStatistics, u32, u32, u32, u32, u32, u64, counts, counts, pools, pools, methods)
finished = st.builds(
    Finished,
    st.sampled_from(FinishReason),
    u64,
    u32,
    u32,
    u32,
    st.none() | token,
    st.none() | st.text(min_size=1, max_size=20),
    statistics,
    u64,
    u64,
    u64,
    st.booleans(),
)
logprob = st.floats(width=32, allow_nan=False)
token_logprobs = st.builds(TokenLogprobs, token, logprob, some(st.builds(Alternative, token, logprob)), u32)
rounds = st.builds(RoundReport, name, u32, u32, u64)
deltas = st.builds(
    GenerationDelta,
    u32,
    tokens,
    name,
    st.none() | finished,
    some(token_logprobs),
    st.none() | rounds,
    some(token_logprobs),
)

links = st.builds(DraftLinkStatus, name, name, name, name, u32)
draft_members = st.builds(DraftMember, name, name, u32, u32, name, double, u32)
by_word = st.dictionaries(name, u64, max_size=3)
wishes = st.builds(PoolWishes, name, u64, u64, u64, u64, u64, by_word, by_word, by_word, some(double))
target_members = st.builds(
    TargetMember,
    name,
    u32,
    u32,
    double,
    st.booleans(),
    name,
    u32,
    name,
    name,
    u32,
    u32,
    some(links),
    some(wishes),
    u64,
    double,
    double,
    double,
    double,
    double,
    name,
)
gateway_members = st.builds(GatewayMember, u32, u32)
members = st.builds(
    Member,
    st.text(min_size=1, max_size=64),
    st.sampled_from(MemberKind),
    st.sampled_from(MemberState),
    name,
    name,
    u32,
    st.none() | draft_members,
    st.none() | target_members,
    st.none() | gateway_members,
)
figures = st.builds(Figure, name, double)
decisions = st.builds(ScalingDecision, name, u32, u32, u32, u32, name, some(figures))
lost_workers = st.builds(LostWorker, name, st.sampled_from(LossKind), name, double)
losses = st.builds(PoolLosses, name, u32, lost_workers)
snapshots = st.builds(Snapshot, some(members), some(decisions), some(losses))
