from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class MemberKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MEMBER_KIND_UNSPECIFIED: _ClassVar[MemberKind]
    MEMBER_KIND_GATEWAY: _ClassVar[MemberKind]
    MEMBER_KIND_TARGET: _ClassVar[MemberKind]
    MEMBER_KIND_DRAFT: _ClassVar[MemberKind]

class MemberState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MEMBER_STATE_UNSPECIFIED: _ClassVar[MemberState]
    MEMBER_STATE_STARTING: _ClassVar[MemberState]
    MEMBER_STATE_READY: _ClassVar[MemberState]
    MEMBER_STATE_DRAINING: _ClassVar[MemberState]

class LossKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    LOSS_KIND_UNSPECIFIED: _ClassVar[LossKind]
    LOSS_KIND_LEFT: _ClassVar[LossKind]
    LOSS_KIND_SILENT: _ClassVar[LossKind]
MEMBER_KIND_UNSPECIFIED: MemberKind
MEMBER_KIND_GATEWAY: MemberKind
MEMBER_KIND_TARGET: MemberKind
MEMBER_KIND_DRAFT: MemberKind
MEMBER_STATE_UNSPECIFIED: MemberState
MEMBER_STATE_STARTING: MemberState
MEMBER_STATE_READY: MemberState
MEMBER_STATE_DRAINING: MemberState
LOSS_KIND_UNSPECIFIED: LossKind
LOSS_KIND_LEFT: LossKind
LOSS_KIND_SILENT: LossKind

class Member(_message.Message):
    __slots__ = ("incarnation", "kind", "state", "address", "node", "pid", "draft", "target", "gateway")
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    PID_FIELD_NUMBER: _ClassVar[int]
    DRAFT_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    GATEWAY_FIELD_NUMBER: _ClassVar[int]
    incarnation: str
    kind: MemberKind
    state: MemberState
    address: str
    node: str
    pid: int
    draft: DraftMember
    target: TargetMember
    gateway: GatewayMember
    def __init__(self, incarnation: _Optional[str] = ..., kind: _Optional[_Union[MemberKind, str]] = ..., state: _Optional[_Union[MemberState, str]] = ..., address: _Optional[str] = ..., node: _Optional[str] = ..., pid: _Optional[int] = ..., draft: _Optional[_Union[DraftMember, _Mapping]] = ..., target: _Optional[_Union[TargetMember, _Mapping]] = ..., gateway: _Optional[_Union[GatewayMember, _Mapping]] = ...) -> None: ...

class DraftMember(_message.Message):
    __slots__ = ("pool", "method", "sessions", "max_sessions", "fault", "busy_s", "queued_rows")
    POOL_FIELD_NUMBER: _ClassVar[int]
    METHOD_FIELD_NUMBER: _ClassVar[int]
    SESSIONS_FIELD_NUMBER: _ClassVar[int]
    MAX_SESSIONS_FIELD_NUMBER: _ClassVar[int]
    FAULT_FIELD_NUMBER: _ClassVar[int]
    BUSY_S_FIELD_NUMBER: _ClassVar[int]
    QUEUED_ROWS_FIELD_NUMBER: _ClassVar[int]
    pool: str
    method: str
    sessions: int
    max_sessions: int
    fault: str
    busy_s: float
    queued_rows: int
    def __init__(self, pool: _Optional[str] = ..., method: _Optional[str] = ..., sessions: _Optional[int] = ..., max_sessions: _Optional[int] = ..., fault: _Optional[str] = ..., busy_s: _Optional[float] = ..., queued_rows: _Optional[int] = ...) -> None: ...

class GatewayMember(_message.Message):
    __slots__ = ("in_flight", "max_in_flight")
    IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    MAX_IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    in_flight: int
    max_in_flight: int
    def __init__(self, in_flight: _Optional[int] = ..., max_in_flight: _Optional[int] = ...) -> None: ...

class TargetMember(_message.Message):
    __slots__ = ("model", "running", "waiting", "kv_usage", "exact", "exact_reason", "depth", "depth_reason", "draft_links", "tokenizer_fingerprint", "vocab_size", "max_model_len", "pool_wishes", "committed_tokens", "decoding_s", "threshold", "goodput_tokens_per_s", "predicted_goodput_tokens_per_s", "plain_goodput_tokens_per_s", "logits_fingerprint")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    RUNNING_FIELD_NUMBER: _ClassVar[int]
    WAITING_FIELD_NUMBER: _ClassVar[int]
    KV_USAGE_FIELD_NUMBER: _ClassVar[int]
    EXACT_FIELD_NUMBER: _ClassVar[int]
    EXACT_REASON_FIELD_NUMBER: _ClassVar[int]
    DEPTH_FIELD_NUMBER: _ClassVar[int]
    DEPTH_REASON_FIELD_NUMBER: _ClassVar[int]
    DRAFT_LINKS_FIELD_NUMBER: _ClassVar[int]
    TOKENIZER_FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    VOCAB_SIZE_FIELD_NUMBER: _ClassVar[int]
    MAX_MODEL_LEN_FIELD_NUMBER: _ClassVar[int]
    POOL_WISHES_FIELD_NUMBER: _ClassVar[int]
    COMMITTED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    DECODING_S_FIELD_NUMBER: _ClassVar[int]
    THRESHOLD_FIELD_NUMBER: _ClassVar[int]
    GOODPUT_TOKENS_PER_S_FIELD_NUMBER: _ClassVar[int]
    PREDICTED_GOODPUT_TOKENS_PER_S_FIELD_NUMBER: _ClassVar[int]
    PLAIN_GOODPUT_TOKENS_PER_S_FIELD_NUMBER: _ClassVar[int]
    LOGITS_FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    model: str
    running: int
    waiting: int
    kv_usage: float
    exact: bool
    exact_reason: str
    depth: int
    depth_reason: str
    draft_links: _containers.RepeatedCompositeFieldContainer[DraftLink]
    tokenizer_fingerprint: str
    vocab_size: int
    max_model_len: int
    pool_wishes: _containers.RepeatedCompositeFieldContainer[PoolWishes]
    committed_tokens: int
    decoding_s: float
    threshold: float
    goodput_tokens_per_s: float
    predicted_goodput_tokens_per_s: float
    plain_goodput_tokens_per_s: float
    logits_fingerprint: str
    def __init__(self, model: _Optional[str] = ..., running: _Optional[int] = ..., waiting: _Optional[int] = ..., kv_usage: _Optional[float] = ..., exact: _Optional[bool] = ..., exact_reason: _Optional[str] = ..., depth: _Optional[int] = ..., depth_reason: _Optional[str] = ..., draft_links: _Optional[_Iterable[_Union[DraftLink, _Mapping]]] = ..., tokenizer_fingerprint: _Optional[str] = ..., vocab_size: _Optional[int] = ..., max_model_len: _Optional[int] = ..., pool_wishes: _Optional[_Iterable[_Union[PoolWishes, _Mapping]]] = ..., committed_tokens: _Optional[int] = ..., decoding_s: _Optional[float] = ..., threshold: _Optional[float] = ..., goodput_tokens_per_s: _Optional[float] = ..., predicted_goodput_tokens_per_s: _Optional[float] = ..., plain_goodput_tokens_per_s: _Optional[float] = ..., logits_fingerprint: _Optional[str] = ...) -> None: ...

class PoolWishes(_message.Message):
    __slots__ = ("pool", "wished", "late", "unserved", "verified", "accepted_tokens", "answers", "dropped", "choices", "acceptance")
    class AnswersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    class DroppedEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    class ChoicesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    POOL_FIELD_NUMBER: _ClassVar[int]
    WISHED_FIELD_NUMBER: _ClassVar[int]
    LATE_FIELD_NUMBER: _ClassVar[int]
    UNSERVED_FIELD_NUMBER: _ClassVar[int]
    VERIFIED_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    ANSWERS_FIELD_NUMBER: _ClassVar[int]
    DROPPED_FIELD_NUMBER: _ClassVar[int]
    CHOICES_FIELD_NUMBER: _ClassVar[int]
    ACCEPTANCE_FIELD_NUMBER: _ClassVar[int]
    pool: str
    wished: int
    late: int
    unserved: int
    verified: int
    accepted_tokens: int
    answers: _containers.ScalarMap[str, int]
    dropped: _containers.ScalarMap[str, int]
    choices: _containers.ScalarMap[str, int]
    acceptance: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, pool: _Optional[str] = ..., wished: _Optional[int] = ..., late: _Optional[int] = ..., unserved: _Optional[int] = ..., verified: _Optional[int] = ..., accepted_tokens: _Optional[int] = ..., answers: _Optional[_Mapping[str, int]] = ..., dropped: _Optional[_Mapping[str, int]] = ..., choices: _Optional[_Mapping[str, int]] = ..., acceptance: _Optional[_Iterable[float]] = ...) -> None: ...

class DraftLink(_message.Message):
    __slots__ = ("incarnation", "pool", "state", "reason", "sessions")
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    POOL_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    SESSIONS_FIELD_NUMBER: _ClassVar[int]
    incarnation: str
    pool: str
    state: str
    reason: str
    sessions: int
    def __init__(self, incarnation: _Optional[str] = ..., pool: _Optional[str] = ..., state: _Optional[str] = ..., reason: _Optional[str] = ..., sessions: _Optional[int] = ...) -> None: ...

class ScalingDecision(_message.Message):
    __slots__ = ("deployment", "desired", "wanted", "min_replicas", "max_replicas", "reason", "figures")
    DEPLOYMENT_FIELD_NUMBER: _ClassVar[int]
    DESIRED_FIELD_NUMBER: _ClassVar[int]
    WANTED_FIELD_NUMBER: _ClassVar[int]
    MIN_REPLICAS_FIELD_NUMBER: _ClassVar[int]
    MAX_REPLICAS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    FIGURES_FIELD_NUMBER: _ClassVar[int]
    deployment: str
    desired: int
    wanted: int
    min_replicas: int
    max_replicas: int
    reason: str
    figures: _containers.RepeatedCompositeFieldContainer[Figure]
    def __init__(self, deployment: _Optional[str] = ..., desired: _Optional[int] = ..., wanted: _Optional[int] = ..., min_replicas: _Optional[int] = ..., max_replicas: _Optional[int] = ..., reason: _Optional[str] = ..., figures: _Optional[_Iterable[_Union[Figure, _Mapping]]] = ...) -> None: ...

class Figure(_message.Message):
    __slots__ = ("name", "value")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    name: str
    value: float
    def __init__(self, name: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...

class LostWorker(_message.Message):
    __slots__ = ("incarnation", "how", "fault", "ago_s")
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    HOW_FIELD_NUMBER: _ClassVar[int]
    FAULT_FIELD_NUMBER: _ClassVar[int]
    AGO_S_FIELD_NUMBER: _ClassVar[int]
    incarnation: str
    how: LossKind
    fault: str
    ago_s: float
    def __init__(self, incarnation: _Optional[str] = ..., how: _Optional[_Union[LossKind, str]] = ..., fault: _Optional[str] = ..., ago_s: _Optional[float] = ...) -> None: ...

class PoolLosses(_message.Message):
    __slots__ = ("pool", "count", "last")
    POOL_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    pool: str
    count: int
    last: LostWorker
    def __init__(self, pool: _Optional[str] = ..., count: _Optional[int] = ..., last: _Optional[_Union[LostWorker, _Mapping]] = ...) -> None: ...

class HeartbeatRequest(_message.Message):
    __slots__ = ("member", "metrics", "leaving")
    MEMBER_FIELD_NUMBER: _ClassVar[int]
    METRICS_FIELD_NUMBER: _ClassVar[int]
    LEAVING_FIELD_NUMBER: _ClassVar[int]
    member: Member
    metrics: str
    leaving: bool
    def __init__(self, member: _Optional[_Union[Member, _Mapping]] = ..., metrics: _Optional[str] = ..., leaving: _Optional[bool] = ...) -> None: ...

class HeartbeatResponse(_message.Message):
    __slots__ = ("members", "scaling", "losses")
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    SCALING_FIELD_NUMBER: _ClassVar[int]
    LOSSES_FIELD_NUMBER: _ClassVar[int]
    members: _containers.RepeatedCompositeFieldContainer[Member]
    scaling: _containers.RepeatedCompositeFieldContainer[ScalingDecision]
    losses: _containers.RepeatedCompositeFieldContainer[PoolLosses]
    def __init__(self, members: _Optional[_Iterable[_Union[Member, _Mapping]]] = ..., scaling: _Optional[_Iterable[_Union[ScalingDecision, _Mapping]]] = ..., losses: _Optional[_Iterable[_Union[PoolLosses, _Mapping]]] = ...) -> None: ...

class GetSnapshotRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetSnapshotResponse(_message.Message):
    __slots__ = ("members", "scaling", "losses")
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    SCALING_FIELD_NUMBER: _ClassVar[int]
    LOSSES_FIELD_NUMBER: _ClassVar[int]
    members: _containers.RepeatedCompositeFieldContainer[Member]
    scaling: _containers.RepeatedCompositeFieldContainer[ScalingDecision]
    losses: _containers.RepeatedCompositeFieldContainer[PoolLosses]
    def __init__(self, members: _Optional[_Iterable[_Union[Member, _Mapping]]] = ..., scaling: _Optional[_Iterable[_Union[ScalingDecision, _Mapping]]] = ..., losses: _Optional[_Iterable[_Union[PoolLosses, _Mapping]]] = ...) -> None: ...

class GetMetricsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetMetricsResponse(_message.Message):
    __slots__ = ("text",)
    TEXT_FIELD_NUMBER: _ClassVar[int]
    text: str
    def __init__(self, text: _Optional[str] = ...) -> None: ...
