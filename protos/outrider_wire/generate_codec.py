"""Requests and answers of GenerateService, between domain words and protobuf."""

from __future__ import annotations

from outrider.v1 import common_pb2 as common
from outrider.v1 import generate_pb2 as pb
from outrider_wire.encoding import misfits_named
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
from outrider_wire.sampling import SamplingParams, SpeculationOptions

_REASON_TO_PB = {
    FinishReason.STOP: pb.FINISH_REASON_STOP,
    FinishReason.LENGTH: pb.FINISH_REASON_LENGTH,
    FinishReason.ABORT: pb.FINISH_REASON_ABORT,
}
_METHOD_TO_PB = {
    RejectionSampleMethod.COUPLED: common.REJECTION_SAMPLE_METHOD_COUPLED,
    RejectionSampleMethod.STRICT: common.REJECTION_SAMPLE_METHOD_STRICT,
    RejectionSampleMethod.PROBABILISTIC: common.REJECTION_SAMPLE_METHOD_PROBABILISTIC,
    RejectionSampleMethod.BLOCK: common.REJECTION_SAMPLE_METHOD_BLOCK,
    RejectionSampleMethod.SYNTHETIC: common.REJECTION_SAMPLE_METHOD_SYNTHETIC,
}
_METHOD_FROM_PB = {value: method for method, value in _METHOD_TO_PB.items()}
_REASON_FROM_PB = {value: reason for reason, value in _REASON_TO_PB.items()}
_ATTRIBUTES = {"text": "prompt_text", "token_ids": "prompt_token_ids"}
"""Where a request has another word than the message."""


def generate_request_from(request: GenerationRequest) -> pb.GenerateRequest:
    """A request as it goes on the wire.

    Raises:
        InvalidRequest: a value does not fit.
    """
    with misfits_named(pb.GenerateRequest, request, _ATTRIBUTES):
        return _request_to(request)


def _request_to(request: GenerationRequest) -> pb.GenerateRequest:
    message = pb.GenerateRequest(
        request_id=request.request_id,
        model=request.model,
        sampling=_sampling_to(request.sampling),
        speculation=common.SpeculationOptions(
            max_depth=request.speculation.max_depth,
            pool=request.speculation.pool or "",
            latency_class=request.speculation.latency_class or "",
        ),
        tenant=request.tenant,
    )
    if request.prompt_text is not None:
        message.text = request.prompt_text
    if request.prompt_token_ids is not None:
        message.token_ids.ids.extend(request.prompt_token_ids)
        message.token_ids.SetInParent()
    if request.committed_token_ids:
        message.committed_token_ids.ids.extend(request.committed_token_ids)
    return message


def generation_request_from(message: pb.GenerateRequest) -> GenerationRequest:
    """A request as it came off the wire; its values are not checked yet."""
    prompt = message.WhichOneof("prompt")
    return GenerationRequest(
        request_id=message.request_id,
        model=message.model,
        prompt_text=message.text if prompt == "text" else None,
        prompt_token_ids=tuple(message.token_ids.ids) if prompt == "token_ids" else None,
        sampling=_sampling_from(message.sampling),
        speculation=SpeculationOptions(
            max_depth=message.speculation.max_depth if message.speculation.HasField("max_depth") else None,
            pool=message.speculation.pool or None,
            latency_class=message.speculation.latency_class or None,
        ),
        tenant=message.tenant,
        committed_token_ids=tuple(message.committed_token_ids.ids),
    )


def generate_response_from(delta: GenerationDelta) -> pb.GenerateResponse:
    """A piece of an answer as it goes on the wire."""
    finished = None if delta.finished is None else _finished_to(delta.finished)
    return pb.GenerateResponse(
        index=delta.index,
        token_ids=delta.token_ids,
        text=delta.text,
        finished=finished,
        logprobs=[_logprobs_to(item) for item in delta.logprobs],
        round=None if delta.round is None else _round_to(delta.round),
        prompt_logprobs=[_logprobs_to(item) for item in delta.prompt_logprobs],
    )


def generation_delta_from(message: pb.GenerateResponse) -> GenerationDelta:
    """A piece of an answer as it came off the wire."""
    return GenerationDelta(
        index=message.index,
        token_ids=tuple(message.token_ids),
        text=message.text,
        finished=_finished_from(message.finished) if message.HasField("finished") else None,
        logprobs=tuple(_logprobs_from(item) for item in message.logprobs),
        round=_round_from(message.round) if message.HasField("round") else None,
        prompt_logprobs=tuple(_logprobs_from(item) for item in message.prompt_logprobs),
    )


def _round_to(report: RoundReport) -> pb.RoundReport:
    return pb.RoundReport(
        pool=report.pool, drafted=report.drafted, accepted=report.accepted, draft_wait_us=report.draft_wait_us
    )


def _round_from(message: pb.RoundReport) -> RoundReport:
    return RoundReport(message.pool, message.drafted, message.accepted, message.draft_wait_us)


def _logprobs_to(item: TokenLogprobs) -> pb.TokenLogprobs:
    return pb.TokenLogprobs(
        token_id=item.token_id,
        logprob=item.logprob,
        rank=item.rank,
        top_ids=[other.token_id for other in item.top],
        top_logprobs=[other.logprob for other in item.top],
    )


def _logprobs_from(message: pb.TokenLogprobs) -> TokenLogprobs:
    others = zip(message.top_ids, message.top_logprobs, strict=False)
    top = tuple(Alternative(*other) for other in others)
    return TokenLogprobs(message.token_id, message.logprob, top, message.rank)


def _sampling_to(params: SamplingParams) -> common.SamplingParams:
    return common.SamplingParams(
        temperature=params.temperature,
        top_k=params.top_k,
        top_p=params.top_p,
        min_p=params.min_p,
        seed=params.seed,
        max_tokens=params.max_tokens,
        ignore_eos=params.ignore_eos,
        stop_token_ids=params.stop_token_ids,
        stop=params.stop,
        n=params.n,
        include_stop_str_in_output=params.include_stop_str_in_output,
        presence_penalty=params.presence_penalty,
        frequency_penalty=params.frequency_penalty,
        repetition_penalty=params.repetition_penalty,
        logit_bias=params.logit_bias,
        allowed_token_ids=params.allowed_token_ids,
        bad_words=params.bad_words,
        bad_word_ids=[common.TokenIds(ids=ids) for ids in params.bad_word_ids],
        min_tokens=params.min_tokens,
        logprobs=params.logprobs,
        json_schema=params.json_schema,
        regex=params.regex,
        choices=params.choices,
        prompt_logprobs=params.prompt_logprobs,
    )


def _sampling_from(message: common.SamplingParams) -> SamplingParams:
    return SamplingParams(
        temperature=message.temperature,
        top_k=message.top_k,
        top_p=message.top_p if message.HasField("top_p") else 1.0,
        min_p=message.min_p,
        seed=message.seed if message.HasField("seed") else None,
        max_tokens=message.max_tokens if message.HasField("max_tokens") else None,
        ignore_eos=message.ignore_eos,
        stop_token_ids=tuple(message.stop_token_ids),
        stop=tuple(message.stop),
        n=message.n or 1,
        include_stop_str_in_output=message.include_stop_str_in_output,
        presence_penalty=message.presence_penalty,
        frequency_penalty=message.frequency_penalty,
        repetition_penalty=message.repetition_penalty if message.HasField("repetition_penalty") else 1.0,
        logit_bias=dict(message.logit_bias),
        allowed_token_ids=tuple(message.allowed_token_ids),
        bad_words=tuple(message.bad_words),
        bad_word_ids=tuple(tuple(run.ids) for run in message.bad_word_ids),
        min_tokens=message.min_tokens,
        logprobs=message.logprobs if message.HasField("logprobs") else None,
        json_schema=message.json_schema if message.HasField("json_schema") else None,
        regex=message.regex if message.HasField("regex") else None,
        choices=tuple(message.choices),
        prompt_logprobs=message.prompt_logprobs if message.HasField("prompt_logprobs") else None,
    )


def _finished_to(finished: Finished) -> pb.Finished:
    return pb.Finished(
        reason=_REASON_TO_PB[finished.reason],
        stop_token_id=finished.stop_token_id,
        stop_string=finished.stop_string or "",
        seed=finished.seed,
        prompt_tokens=finished.prompt_tokens,
        completion_tokens=finished.completion_tokens,
        cached_tokens=finished.cached_tokens,
        speculation=_statistics_to(finished.speculation),
        queue_time_us=finished.queue_time_us,
        time_to_first_token_us=finished.time_to_first_token_us,
        generation_time_us=finished.generation_time_us,
        mixed_logits=finished.mixed_logits,
    )


def _finished_from(message: pb.Finished) -> Finished:
    return Finished(
        reason=_REASON_FROM_PB.get(message.reason, FinishReason.ABORT),
        seed=message.seed,
        prompt_tokens=message.prompt_tokens,
        completion_tokens=message.completion_tokens,
        cached_tokens=message.cached_tokens,
        stop_token_id=message.stop_token_id if message.HasField("stop_token_id") else None,
        stop_string=message.stop_string or None,
        speculation=_statistics_from(message.speculation),
        queue_time_us=message.queue_time_us,
        time_to_first_token_us=message.time_to_first_token_us,
        generation_time_us=message.generation_time_us,
        mixed_logits=message.mixed_logits,
    )


def _statistics_to(statistics: SpeculationStatistics) -> common.SpeculationStatistics:
    return common.SpeculationStatistics(
        num_spec_steps=statistics.num_spec_steps,
        num_draft_tokens=statistics.num_draft_tokens,
        num_accepted_draft_tokens=statistics.num_accepted_draft_tokens,
        num_fallback_steps=statistics.num_fallback_steps,
        num_spec_tokens=statistics.num_spec_tokens,
        draft_wait_us=statistics.draft_wait_us,
        per_step_drafted=statistics.per_step_drafted,
        per_step_accepted=statistics.per_step_accepted,
        accepted_by_pool=statistics.accepted_by_pool,
        drafted_by_pool=statistics.drafted_by_pool,
        rejection_sample_method=_METHOD_TO_PB[statistics.rejection_sample_method],
    )


def _statistics_from(message: common.SpeculationStatistics) -> SpeculationStatistics:
    return SpeculationStatistics(
        num_spec_steps=message.num_spec_steps,
        num_draft_tokens=message.num_draft_tokens,
        num_accepted_draft_tokens=message.num_accepted_draft_tokens,
        num_fallback_steps=message.num_fallback_steps,
        num_spec_tokens=message.num_spec_tokens,
        draft_wait_us=message.draft_wait_us,
        per_step_drafted=tuple(message.per_step_drafted),
        per_step_accepted=tuple(message.per_step_accepted),
        accepted_by_pool=dict(message.accepted_by_pool),
        drafted_by_pool=dict(message.drafted_by_pool),
        rejection_sample_method=_METHOD_FROM_PB.get(message.rejection_sample_method, RejectionSampleMethod.COUPLED),
    )
