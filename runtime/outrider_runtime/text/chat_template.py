"""A model's chat template: messages to the prompt text that the model was trained on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import jinja2

from outrider_runtime.clock import Clock, SystemClock
from outrider_runtime.errors import InvalidRequest, ModelRefused, Words, shorten
from outrider_runtime.text.bounded_jinja import TemplateAskedToFail, current_meter, make_environment
from outrider_runtime.text.model_files import read_json, special_tokens

MAX_PROMPT_CHARACTERS = 4_000_000
MAX_RENDER_S = 2.0


class ChatTemplate:
    """Renders messages as transformers' `apply_chat_template` does. Safe to share between threads.

    Args:
        source: Jinja text, or None for a model without a template: then every rendering is refused.
        tokens: special tokens by role, which templates use by name (``bos_token``, ``eos_token``, …).
        clock: measures how long a rendering takes.
        max_characters: longer prompts are refused.
        max_render_s: slower renderings are refused.

    Raises:
        ModelRefused: `source` is not a template.
    """

    def __init__(
        self,
        source: str | None,
        tokens: Mapping[str, str],
        clock: Clock | None = None,
        max_characters: int = MAX_PROMPT_CHARACTERS,
        max_render_s: float = MAX_RENDER_S,
    ) -> None:
        self._tokens = dict(tokens)
        self._clock = clock or SystemClock()
        self._max_characters = max_characters
        self._max_render_s = max_render_s
        self._template = None if source is None else _compile(source)

    @classmethod
    def from_folder(cls, folder: Path | str) -> ChatTemplate:
        """The template of a model folder: chat_template.jinja, or the one in tokenizer_config.json.

        Raises:
            ModelRefused: the template or a file that it depends on is damaged.
        """
        folder = Path(folder)
        return cls(_find_source(folder), special_tokens(folder))

    @property
    def exists(self) -> bool:
        """Whether the model has a template."""
        return self._template is not None

    def render(self, messages: Sequence[Mapping[str, Any]], add_generation_prompt: bool = True) -> str:
        """Prompt text for `messages`; encode it with ``add_special_tokens=False``.

        Args:
            messages: mappings with ``role`` and ``content``; fields that are None count as missing.
            add_generation_prompt: end with what introduces the assistant's answer.

        Raises:
            InvalidRequest: no template, messages that the template rejects, or too long a prompt.
        """
        if self._template is None:
            raise InvalidRequest(
                "messages", Words("a chat"), "no chat: the model has no chat template; send a prompt instead"
            )
        variables = {
            **self._tokens,
            "messages": [{key: value for key, value in message.items() if value is not None} for message in messages],
            "tools": None,
            "documents": None,
            "add_generation_prompt": add_generation_prompt,
        }
        try:
            return self._render(self._template, variables)
        except TemplateAskedToFail as error:
            rule = "messages that the model's chat template accepts"
            raise InvalidRequest("messages", Words(error), rule) from error
        except (jinja2.TemplateError, TypeError, ValueError, LookupError, ArithmeticError, RecursionError) as error:
            rule = "messages that the model's chat template can render"
            raise InvalidRequest("messages", Words(error), rule) from error

    def _render(self, template: jinja2.Template, variables: dict[str, Any]) -> str:
        end_s = self._clock.now_s() + self._max_render_s

        def meter() -> None:
            if self._clock.now_s() > end_s:
                raise InvalidRequest("messages", Words("a slow chat"), f"chats rendered within {self._max_render_s} s")

        reset = current_meter.set(meter)
        parts: list[str] = []
        room = self._max_characters
        try:
            for part in template.generate(variables):
                room -= len(part)
                if room < 0:
                    limit = f"at most {self._max_characters} characters after the chat template"
                    raise InvalidRequest("messages", Words("a long chat"), limit)
                parts.append(part)
        finally:
            current_meter.reset(reset)
        return "".join(parts)


def _compile(source: str) -> jinja2.Template:
    try:
        return make_environment(datetime.now).from_string(source)
    except jinja2.TemplateSyntaxError as error:
        raise ModelRefused(f"chat template, line {error.lineno}: {error.message}: {shorten(source)}") from error


def _find_source(folder: Path) -> str | None:
    file = folder / "chat_template.jinja"
    if file.is_file():
        return file.read_text(encoding="utf-8")
    declared = read_json(folder / "tokenizer_config.json").get("chat_template")
    if isinstance(declared, list):  # several named templates; "default" is the plain one
        declared = {entry["name"]: entry["template"] for entry in declared}.get("default")
    return declared if isinstance(declared, str) else None
