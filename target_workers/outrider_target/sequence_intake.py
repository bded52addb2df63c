"""Makes sequences of validated requests, resumed ones included."""

from __future__ import annotations

from outrider_runtime.clock import Clock
from outrider_runtime.errors import InvalidRequest
from outrider_target.block_pool import root_key
from outrider_target.depth_control import DepthControl
from outrider_target.logits_change import LogitsChange
from outrider_target.model_facts import ModelFacts
from outrider_target.output_text import OutputText
from outrider_target.prompt_logprobs import collector_of
from outrider_target.sequence import Sequence
from outrider_target.sequence_statistics import SequenceStatistics, sequence_depth
from outrider_target.settings import TargetSettings
from outrider_target.structure.constraint import Constraint
from outrider_wire.generation import GenerationRequest, RejectionSampleMethod


class SequenceIntake:
    """What all sequences of an engine have in common. May be used from any thread.

    Args:
        settings: bounds of the target.
        facts: of the model.
        vocab_size: V.
        method: by which proposals are accepted.
        control: knows how deep sequences may speculate.
        clock: monotonic time.
    """

    def __init__(
        self,
        settings: TargetSettings,
        facts: ModelFacts,
        vocab_size: int,
        method: RejectionSampleMethod,
        control: DepthControl,
        clock: Clock,
    ) -> None:
        self._settings = settings
        self._facts = facts
        self._vocab_size = vocab_size
        self._method = method
        self._control = control
        self._clock = clock

    def sequence(self, key: int, request: GenerationRequest, seed: int, constraint: Constraint | None) -> Sequence:
        """A sequence that has not run.

        Args:
            key: names it in the engine.
            request: validated, of token ids.
            seed: of its noise.
            constraint: fresh, of the form that the request prescribes, if it does.

        Raises:
            InvalidRequest: nothing is left to generate, or nothing to choose from.
        """
        prompt = request.prompt_token_ids
        assert prompt is not None, "requests reach the engine as token ids"
        assert request.sampling.is_structured == (constraint is not None), "a form comes with its constraint"
        room = self._settings.max_model_len - len(prompt)
        max_tokens = room if request.sampling.max_tokens is None else min(room, request.sampling.max_tokens)
        if len(request.committed_token_ids) >= max_tokens:
            raise InvalidRequest(
                "committed_token_ids", len(request.committed_token_ids), f"fewer than {max_tokens} ids"
            )
        sampling = request.sampling
        if constraint is not None and not constraint.take(request.committed_token_ids):
            raise InvalidRequest("committed_token_ids", request.committed_token_ids, "ids that the form lets come")
        sequence = Sequence(
            key=key,
            request=request,
            seed=seed,
            token_ids=[*prompt, *request.committed_token_ids],
            prompt_length=len(prompt),
            max_length=len(prompt) + max_tokens,
            text=OutputText(self._facts.new_decoder(), sampling.stop, sampling.include_stop_str_in_output),
            change=LogitsChange(sampling, prompt, self._facts.eos_token_ids, self._vocab_size),
            root=root_key(self._facts.weight_version, request.tenant),
            statistics=SequenceStatistics(
                self._clock.now_s(), sequence_depth(request, self._control.max_depth), self._method
            ),
            constraint=constraint,
            prompt_logprobs=collector_of(request),
        )
        sequence.change.add(request.committed_token_ids)
        sequence.text.push(request.committed_token_ids[: sampling.min_tokens], is_muted=True)
        sequence.text.push(request.committed_token_ids[sampling.min_tokens :])
        sequence.text.take()  # another replica has shown it
        return sequence
