"""Names of fields as HTTP clients wrote them, in errors of the shared validator."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from outrider_cluster.gateway.openai_models import ChatBody, SamplingBody
from outrider_runtime.errors import InvalidRequest

_FORM_FIELDS = frozenset({"json_schema", "regex", "choices"})
_PROMPT_FIELDS = frozenset({"prompt", "text", "prompt_text", "prompt_token_ids", "token_ids"})


@contextmanager
def http_names(prompt_field: str, body: SamplingBody) -> Iterator[None]:
    """Rename the field of an InvalidRequest raised inside.

    Args:
        prompt_field: what this API calls the prompt.
        body: tells which of two names for one thing the client used.
    """
    try:
        yield
    except InvalidRequest as error:
        field = error.field.removeprefix("sampling.")
        if field.split(".")[0].split("[")[0] in _PROMPT_FIELDS:
            field = prompt_field
        field = field.replace("bad_word_ids", "bad_words", 1)
        allowed, form = error.allowed, body.form()
        if form is not None and field.split("[")[0] in _FORM_FIELDS:
            field = form.field
        if form is not None and field == "ignore_eos":
            for name in _FORM_FIELDS:
                allowed = allowed.replace(f"together with {name}:", f"together with {form.field}:")
        if field == "logprobs" and isinstance(body, ChatBody):
            field = "top_logprobs"
        if field == "max_tokens" and isinstance(body, ChatBody) and body.max_completion_tokens is not None:
            field = "max_completion_tokens"
        if (field, allowed) == (error.field, error.allowed):
            raise
        raise InvalidRequest(field, error.value, allowed) from error
