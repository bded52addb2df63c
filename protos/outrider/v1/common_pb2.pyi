from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class RejectionSampleMethod(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    REJECTION_SAMPLE_METHOD_UNSPECIFIED: _ClassVar[RejectionSampleMethod]
    REJECTION_SAMPLE_METHOD_COUPLED: _ClassVar[RejectionSampleMethod]
    REJECTION_SAMPLE_METHOD_STRICT: _ClassVar[RejectionSampleMethod]
    REJECTION_SAMPLE_METHOD_PROBABILISTIC: _ClassVar[RejectionSampleMethod]
    REJECTION_SAMPLE_METHOD_BLOCK: _ClassVar[RejectionSampleMethod]
    REJECTION_SAMPLE_METHOD_SYNTHETIC: _ClassVar[RejectionSampleMethod]
REJECTION_SAMPLE_METHOD_UNSPECIFIED: RejectionSampleMethod
REJECTION_SAMPLE_METHOD_COUPLED: RejectionSampleMethod
REJECTION_SAMPLE_METHOD_STRICT: RejectionSampleMethod
REJECTION_SAMPLE_METHOD_PROBABILISTIC: RejectionSampleMethod
REJECTION_SAMPLE_METHOD_BLOCK: RejectionSampleMethod
REJECTION_SAMPLE_METHOD_SYNTHETIC: RejectionSampleMethod

class TokenIds(_message.Message):
    __slots__ = ("ids",)
    IDS_FIELD_NUMBER: _ClassVar[int]
    ids: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, ids: _Optional[_Iterable[int]] = ...) -> None: ...

class SamplingParams(_message.Message):
    __slots__ = ("temperature", "top_k", "top_p", "min_p", "seed", "max_tokens", "ignore_eos", "stop_token_ids", "stop", "n", "include_stop_str_in_output", "presence_penalty", "frequency_penalty", "repetition_penalty", "logit_bias", "allowed_token_ids", "bad_words", "bad_word_ids", "min_tokens", "logprobs", "json_schema", "regex", "choices", "prompt_logprobs")
    class LogitBiasEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: int
        value: float
        def __init__(self, key: _Optional[int] = ..., value: _Optional[float] = ...) -> None: ...
    TEMPERATURE_FIELD_NUMBER: _ClassVar[int]
    TOP_K_FIELD_NUMBER: _ClassVar[int]
    TOP_P_FIELD_NUMBER: _ClassVar[int]
    MIN_P_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    MAX_TOKENS_FIELD_NUMBER: _ClassVar[int]
    IGNORE_EOS_FIELD_NUMBER: _ClassVar[int]
    STOP_TOKEN_IDS_FIELD_NUMBER: _ClassVar[int]
    STOP_FIELD_NUMBER: _ClassVar[int]
    N_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_STOP_STR_IN_OUTPUT_FIELD_NUMBER: _ClassVar[int]
    PRESENCE_PENALTY_FIELD_NUMBER: _ClassVar[int]
    FREQUENCY_PENALTY_FIELD_NUMBER: _ClassVar[int]
    REPETITION_PENALTY_FIELD_NUMBER: _ClassVar[int]
    LOGIT_BIAS_FIELD_NUMBER: _ClassVar[int]
    ALLOWED_TOKEN_IDS_FIELD_NUMBER: _ClassVar[int]
    BAD_WORDS_FIELD_NUMBER: _ClassVar[int]
    BAD_WORD_IDS_FIELD_NUMBER: _ClassVar[int]
    MIN_TOKENS_FIELD_NUMBER: _ClassVar[int]
    LOGPROBS_FIELD_NUMBER: _ClassVar[int]
    JSON_SCHEMA_FIELD_NUMBER: _ClassVar[int]
    REGEX_FIELD_NUMBER: _ClassVar[int]
    CHOICES_FIELD_NUMBER: _ClassVar[int]
    PROMPT_LOGPROBS_FIELD_NUMBER: _ClassVar[int]
    temperature: float
    top_k: int
    top_p: float
    min_p: float
    seed: int
    max_tokens: int
    ignore_eos: bool
    stop_token_ids: _containers.RepeatedScalarFieldContainer[int]
    stop: _containers.RepeatedScalarFieldContainer[str]
    n: int
    include_stop_str_in_output: bool
    presence_penalty: float
    frequency_penalty: float
    repetition_penalty: float
    logit_bias: _containers.ScalarMap[int, float]
    allowed_token_ids: _containers.RepeatedScalarFieldContainer[int]
    bad_words: _containers.RepeatedScalarFieldContainer[str]
    bad_word_ids: _containers.RepeatedCompositeFieldContainer[TokenIds]
    min_tokens: int
    logprobs: int
    json_schema: str
    regex: str
    choices: _containers.RepeatedScalarFieldContainer[str]
    prompt_logprobs: int
    def __init__(self, temperature: _Optional[float] = ..., top_k: _Optional[int] = ..., top_p: _Optional[float] = ..., min_p: _Optional[float] = ..., seed: _Optional[int] = ..., max_tokens: _Optional[int] = ..., ignore_eos: _Optional[bool] = ..., stop_token_ids: _Optional[_Iterable[int]] = ..., stop: _Optional[_Iterable[str]] = ..., n: _Optional[int] = ..., include_stop_str_in_output: _Optional[bool] = ..., presence_penalty: _Optional[float] = ..., frequency_penalty: _Optional[float] = ..., repetition_penalty: _Optional[float] = ..., logit_bias: _Optional[_Mapping[int, float]] = ..., allowed_token_ids: _Optional[_Iterable[int]] = ..., bad_words: _Optional[_Iterable[str]] = ..., bad_word_ids: _Optional[_Iterable[_Union[TokenIds, _Mapping]]] = ..., min_tokens: _Optional[int] = ..., logprobs: _Optional[int] = ..., json_schema: _Optional[str] = ..., regex: _Optional[str] = ..., choices: _Optional[_Iterable[str]] = ..., prompt_logprobs: _Optional[int] = ...) -> None: ...

class SpeculationOptions(_message.Message):
    __slots__ = ("max_depth", "pool", "latency_class")
    MAX_DEPTH_FIELD_NUMBER: _ClassVar[int]
    POOL_FIELD_NUMBER: _ClassVar[int]
    LATENCY_CLASS_FIELD_NUMBER: _ClassVar[int]
    max_depth: int
    pool: str
    latency_class: str
    def __init__(self, max_depth: _Optional[int] = ..., pool: _Optional[str] = ..., latency_class: _Optional[str] = ...) -> None: ...

class SpeculationStatistics(_message.Message):
    __slots__ = ("num_spec_steps", "num_draft_tokens", "num_accepted_draft_tokens", "num_fallback_steps", "num_spec_tokens", "draft_wait_us", "per_step_drafted", "per_step_accepted", "accepted_by_pool", "drafted_by_pool", "rejection_sample_method")
    class AcceptedByPoolEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    class DraftedByPoolEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    NUM_SPEC_STEPS_FIELD_NUMBER: _ClassVar[int]
    NUM_DRAFT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    NUM_ACCEPTED_DRAFT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    NUM_FALLBACK_STEPS_FIELD_NUMBER: _ClassVar[int]
    NUM_SPEC_TOKENS_FIELD_NUMBER: _ClassVar[int]
    DRAFT_WAIT_US_FIELD_NUMBER: _ClassVar[int]
    PER_STEP_DRAFTED_FIELD_NUMBER: _ClassVar[int]
    PER_STEP_ACCEPTED_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_BY_POOL_FIELD_NUMBER: _ClassVar[int]
    DRAFTED_BY_POOL_FIELD_NUMBER: _ClassVar[int]
    REJECTION_SAMPLE_METHOD_FIELD_NUMBER: _ClassVar[int]
    num_spec_steps: int
    num_draft_tokens: int
    num_accepted_draft_tokens: int
    num_fallback_steps: int
    num_spec_tokens: int
    draft_wait_us: int
    per_step_drafted: _containers.RepeatedScalarFieldContainer[int]
    per_step_accepted: _containers.RepeatedScalarFieldContainer[int]
    accepted_by_pool: _containers.ScalarMap[str, int]
    drafted_by_pool: _containers.ScalarMap[str, int]
    rejection_sample_method: RejectionSampleMethod
    def __init__(self, num_spec_steps: _Optional[int] = ..., num_draft_tokens: _Optional[int] = ..., num_accepted_draft_tokens: _Optional[int] = ..., num_fallback_steps: _Optional[int] = ..., num_spec_tokens: _Optional[int] = ..., draft_wait_us: _Optional[int] = ..., per_step_drafted: _Optional[_Iterable[int]] = ..., per_step_accepted: _Optional[_Iterable[int]] = ..., accepted_by_pool: _Optional[_Mapping[str, int]] = ..., drafted_by_pool: _Optional[_Mapping[str, int]] = ..., rejection_sample_method: _Optional[_Union[RejectionSampleMethod, str]] = ...) -> None: ...
