from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class CloseOutcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CLOSE_OUTCOME_UNSPECIFIED: _ClassVar[CloseOutcome]
    CLOSE_OUTCOME_FINISHED: _ClassVar[CloseOutcome]
    CLOSE_OUTCOME_ABORTED: _ClassVar[CloseOutcome]
CLOSE_OUTCOME_UNSPECIFIED: CloseOutcome
CLOSE_OUTCOME_FINISHED: CloseOutcome
CLOSE_OUTCOME_ABORTED: CloseOutcome

class Hello(_message.Message):
    __slots__ = ("protocol_version", "tokenizer_fingerprint", "vocab_size", "weight_version", "incarnation", "lease_ms", "pool", "method")
    PROTOCOL_VERSION_FIELD_NUMBER: _ClassVar[int]
    TOKENIZER_FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    VOCAB_SIZE_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_VERSION_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    LEASE_MS_FIELD_NUMBER: _ClassVar[int]
    POOL_FIELD_NUMBER: _ClassVar[int]
    METHOD_FIELD_NUMBER: _ClassVar[int]
    protocol_version: int
    tokenizer_fingerprint: str
    vocab_size: int
    weight_version: str
    incarnation: str
    lease_ms: int
    pool: str
    method: str
    def __init__(self, protocol_version: _Optional[int] = ..., tokenizer_fingerprint: _Optional[str] = ..., vocab_size: _Optional[int] = ..., weight_version: _Optional[str] = ..., incarnation: _Optional[str] = ..., lease_ms: _Optional[int] = ..., pool: _Optional[str] = ..., method: _Optional[str] = ...) -> None: ...

class SpeculateRequest(_message.Message):
    __slots__ = ("hello", "round")
    HELLO_FIELD_NUMBER: _ClassVar[int]
    ROUND_FIELD_NUMBER: _ClassVar[int]
    hello: Hello
    round: VerifierRound
    def __init__(self, hello: _Optional[_Union[Hello, _Mapping]] = ..., round: _Optional[_Union[VerifierRound, _Mapping]] = ...) -> None: ...

class VerifierRound(_message.Message):
    __slots__ = ("opens", "commits", "closes")
    OPENS_FIELD_NUMBER: _ClassVar[int]
    COMMITS_FIELD_NUMBER: _ClassVar[int]
    CLOSES_FIELD_NUMBER: _ClassVar[int]
    opens: _containers.RepeatedCompositeFieldContainer[Open]
    commits: _containers.RepeatedCompositeFieldContainer[Commit]
    closes: _containers.RepeatedCompositeFieldContainer[Close]
    def __init__(self, opens: _Optional[_Iterable[_Union[Open, _Mapping]]] = ..., commits: _Optional[_Iterable[_Union[Commit, _Mapping]]] = ..., closes: _Optional[_Iterable[_Union[Close, _Mapping]]] = ...) -> None: ...

class Open(_message.Message):
    __slots__ = ("session", "epoch", "token_ids", "prompt_length", "depth_cap", "seed", "temperature", "top_k", "top_p", "tenant", "shares_noise", "wants_draft_laws")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    TOKEN_IDS_FIELD_NUMBER: _ClassVar[int]
    PROMPT_LENGTH_FIELD_NUMBER: _ClassVar[int]
    DEPTH_CAP_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    TEMPERATURE_FIELD_NUMBER: _ClassVar[int]
    TOP_K_FIELD_NUMBER: _ClassVar[int]
    TOP_P_FIELD_NUMBER: _ClassVar[int]
    TENANT_FIELD_NUMBER: _ClassVar[int]
    SHARES_NOISE_FIELD_NUMBER: _ClassVar[int]
    WANTS_DRAFT_LAWS_FIELD_NUMBER: _ClassVar[int]
    session: int
    epoch: int
    token_ids: _containers.RepeatedScalarFieldContainer[int]
    prompt_length: int
    depth_cap: int
    seed: int
    temperature: float
    top_k: int
    top_p: float
    tenant: str
    shares_noise: bool
    wants_draft_laws: bool
    def __init__(self, session: _Optional[int] = ..., epoch: _Optional[int] = ..., token_ids: _Optional[_Iterable[int]] = ..., prompt_length: _Optional[int] = ..., depth_cap: _Optional[int] = ..., seed: _Optional[int] = ..., temperature: _Optional[float] = ..., top_k: _Optional[int] = ..., top_p: _Optional[float] = ..., tenant: _Optional[str] = ..., shares_noise: _Optional[bool] = ..., wants_draft_laws: _Optional[bool] = ...) -> None: ...

class Commit(_message.Message):
    __slots__ = ("session", "epoch", "base_length", "delta", "next_depth", "deadline_ms")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    BASE_LENGTH_FIELD_NUMBER: _ClassVar[int]
    DELTA_FIELD_NUMBER: _ClassVar[int]
    NEXT_DEPTH_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_MS_FIELD_NUMBER: _ClassVar[int]
    session: int
    epoch: int
    base_length: int
    delta: _containers.RepeatedScalarFieldContainer[int]
    next_depth: int
    deadline_ms: int
    def __init__(self, session: _Optional[int] = ..., epoch: _Optional[int] = ..., base_length: _Optional[int] = ..., delta: _Optional[_Iterable[int]] = ..., next_depth: _Optional[int] = ..., deadline_ms: _Optional[int] = ...) -> None: ...

class Close(_message.Message):
    __slots__ = ("session", "epoch", "outcome")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    session: int
    epoch: int
    outcome: CloseOutcome
    def __init__(self, session: _Optional[int] = ..., epoch: _Optional[int] = ..., outcome: _Optional[_Union[CloseOutcome, str]] = ...) -> None: ...

class SpeculateResponse(_message.Message):
    __slots__ = ("hello", "round")
    HELLO_FIELD_NUMBER: _ClassVar[int]
    ROUND_FIELD_NUMBER: _ClassVar[int]
    hello: Hello
    round: DrafterRound
    def __init__(self, hello: _Optional[_Union[Hello, _Mapping]] = ..., round: _Optional[_Union[DrafterRound, _Mapping]] = ...) -> None: ...

class DrafterRound(_message.Message):
    __slots__ = ("chains", "resyncs", "refusals", "load")
    CHAINS_FIELD_NUMBER: _ClassVar[int]
    RESYNCS_FIELD_NUMBER: _ClassVar[int]
    REFUSALS_FIELD_NUMBER: _ClassVar[int]
    LOAD_FIELD_NUMBER: _ClassVar[int]
    chains: _containers.RepeatedCompositeFieldContainer[Chain]
    resyncs: _containers.RepeatedCompositeFieldContainer[ResyncRequest]
    refusals: _containers.RepeatedCompositeFieldContainer[Refusal]
    load: Load
    def __init__(self, chains: _Optional[_Iterable[_Union[Chain, _Mapping]]] = ..., resyncs: _Optional[_Iterable[_Union[ResyncRequest, _Mapping]]] = ..., refusals: _Optional[_Iterable[_Union[Refusal, _Mapping]]] = ..., load: _Optional[_Union[Load, _Mapping]] = ...) -> None: ...

class Chain(_message.Message):
    __slots__ = ("session", "epoch", "base_length", "token_ids", "confidences", "draft_laws")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    BASE_LENGTH_FIELD_NUMBER: _ClassVar[int]
    TOKEN_IDS_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCES_FIELD_NUMBER: _ClassVar[int]
    DRAFT_LAWS_FIELD_NUMBER: _ClassVar[int]
    session: int
    epoch: int
    base_length: int
    token_ids: _containers.RepeatedScalarFieldContainer[int]
    confidences: _containers.RepeatedScalarFieldContainer[float]
    draft_laws: _containers.RepeatedCompositeFieldContainer[DraftLaw]
    def __init__(self, session: _Optional[int] = ..., epoch: _Optional[int] = ..., base_length: _Optional[int] = ..., token_ids: _Optional[_Iterable[int]] = ..., confidences: _Optional[_Iterable[float]] = ..., draft_laws: _Optional[_Iterable[_Union[DraftLaw, _Mapping]]] = ...) -> None: ...

class DraftLaw(_message.Message):
    __slots__ = ("ids", "weights")
    IDS_FIELD_NUMBER: _ClassVar[int]
    WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    ids: _containers.RepeatedScalarFieldContainer[int]
    weights: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, ids: _Optional[_Iterable[int]] = ..., weights: _Optional[_Iterable[int]] = ...) -> None: ...

class ResyncRequest(_message.Message):
    __slots__ = ("session", "epoch", "have_length")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    HAVE_LENGTH_FIELD_NUMBER: _ClassVar[int]
    session: int
    epoch: int
    have_length: int
    def __init__(self, session: _Optional[int] = ..., epoch: _Optional[int] = ..., have_length: _Optional[int] = ...) -> None: ...

class Refusal(_message.Message):
    __slots__ = ("session", "epoch")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    session: int
    epoch: int
    def __init__(self, session: _Optional[int] = ..., epoch: _Optional[int] = ...) -> None: ...

class Load(_message.Message):
    __slots__ = ("queued_rows", "free_sessions", "draft_time_us")
    QUEUED_ROWS_FIELD_NUMBER: _ClassVar[int]
    FREE_SESSIONS_FIELD_NUMBER: _ClassVar[int]
    DRAFT_TIME_US_FIELD_NUMBER: _ClassVar[int]
    queued_rows: int
    free_sessions: int
    draft_time_us: int
    def __init__(self, queued_rows: _Optional[int] = ..., free_sessions: _Optional[int] = ..., draft_time_us: _Optional[int] = ...) -> None: ...
