"""Compiles forms on threads of its own, so that neither the engine nor the network waits for a large schema."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

from llguidance import LLMatcher

from outrider_runtime.errors import InvalidRequest, Overloaded
from outrider_target.structure.constraint import OUTGREW, Constraint
from outrider_target.structure.grammar import LIMITS, Grammar, grammar_of
from outrider_target.structure.vocabulary import Spelling, build_vocabulary
from outrider_wire.sampling import SamplingParams

COMPILE_TIMEOUT_S = 5.0
_THREADS = 2


class Compiler:
    """Makes constraints. Nothing is kept between requests: most forms take a millisecond, and a cache would grow.

    Args:
        spelling: what the model's ids spell; None where it has no end-of-sequence id, so that no form can be kept.
        timeout_s: seconds that a request may wait for its form.
    """

    def __init__(self, spelling: Spelling | None, timeout_s: float = COMPILE_TIMEOUT_S) -> None:
        self._eos_token_ids = frozenset(() if spelling is None else spelling.eos_token_ids)
        self._vocabulary = None if spelling is None else build_vocabulary(spelling)
        self._timeout_s = timeout_s
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="grammar")

    async def constraint(self, sampling: SamplingParams) -> Constraint | None:
        """The constraint of a checked request; None where it prescribes no form.

        Raises:
            InvalidRequest: the form means nothing, asks for what is not supported, or takes too much to compile.
            Overloaded: other requests' forms are being compiled.
        """
        if not sampling.is_structured:
            return None
        compiling = self._threads.submit(self.compile, sampling)
        try:
            return await asyncio.wait_for(asyncio.wrap_future(compiling), self._timeout_s)
        except TimeoutError as error:
            if compiling.cancelled():
                raise Overloaded("other requests' schemas are being compiled") from error
            grammar = grammar_of(sampling)
            raise _refusal(grammar, f"it takes longer than {self._timeout_s:g} s to compile") from error

    def compile(self, sampling: SamplingParams) -> Constraint:
        """As `constraint`, in this thread, of a request that prescribes a form.

        Raises:
            InvalidRequest: as there.
        """
        grammar = grammar_of(sampling)
        if self._vocabulary is None:
            raise _refusal(grammar, "this model has no end-of-sequence id, so no answer could be complete")
        matcher = LLMatcher(self._vocabulary, grammar.text, log_level=0, limits=LIMITS)
        if matcher.is_error():
            raise _refusal(grammar, _reason(matcher.get_error()))
        constraint = Constraint(matcher, self._vocabulary.vocab_size, self._eos_token_ids)
        if not constraint.can_begin():
            raise InvalidRequest(grammar.field, grammar.value, OUTGREW)
        return constraint

    def stop(self) -> None:
        """Let the threads end when they are done."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def _reason(told: str) -> str:
    """What the library told, in one line, and without the grammar that it made of a regular expression."""
    lines = told.partition("\n<non-verbose/>")[0].splitlines() or ["it has an error"]
    return next((line.removeprefix("error: ") for line in lines if line.startswith("error: ")), lines[0])


def _refusal(grammar: Grammar, reason: str) -> InvalidRequest:
    return InvalidRequest(grammar.field, grammar.value, f"one that can be kept to: {reason[:500]}")
