"""Chat templates: what transformers renders, and an end to every rendering."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from outrider_doubles.tiny_tokenizer import CHAT_TEMPLATE, write_tiny_tokenizer

from outrider_runtime.clock import ManualClock
from outrider_runtime.errors import InvalidRequest, ModelRefused
from outrider_runtime.text import ChatTemplate

HELLO = [{"role": "user", "content": "Hello"}]
TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}

# Each row uses something that published templates rely on.
TEMPLATES = {
    "loop and condition": CHAT_TEMPLATE,
    "special tokens by name": "{{ bos_token }}{% for m in messages %}{{ m.content + eos_token }}{% endfor %}",
    "block trimming": "{% for m in messages %}\n  {%- if m.role %}\nU: {{ m.content }}\n{% endif %}{% endfor %}",
    "namespace": "{% set ns = namespace(n=0) %}{% for m in messages %}{% set ns.n = ns.n + 1 %}{% endfor %}{{ ns.n }}",
    "tojson keeps html characters": "{{ messages | tojson }}{{ {'b': '<é>', 'a': [1]} | tojson(indent=2) }}",
    "loop controls": "{% for m in messages %}{{ m.content }}{% if loop.index == 2 %}{% break %}{% endif %}{% endfor %}",
    "macro": "{% macro p(m) %}[{{ m.content | trim }}]{% endmacro %}{% for m in messages %}{{ p(m) }}{% endfor %}",
    "generation tag": "{% for m in messages %}{% generation %}{{ m.content }}{% endgeneration %}{% endfor %}",
    "missing fields": "{% for m in messages %}{{ m.name is defined }}{% if tools %}tools{% endif %}{% endfor %}",
}


@pytest.mark.parametrize("name", TEMPLATES)
@pytest.mark.parametrize("add_generation_prompt", [True, False])
def test_rendering_equals_transformers(name: str, add_generation_prompt: bool, tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    write_tiny_tokenizer(tmp_path)
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "chat_template": TEMPLATES[name], **TOKENS}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    messages = [
        {"role": "system", "content": "Be <brief> & kind."},
        {"role": "user", "content": " héllo\n", "name": None},
        {"role": "assistant", "content": "Hi."},
    ]
    expected = AutoTokenizer.from_pretrained(tmp_path).apply_chat_template(
        messages, tokenize=False, add_generation_prompt=add_generation_prompt
    )
    assert ChatTemplate.from_folder(tmp_path).render(messages, add_generation_prompt) == expected


def test_a_jinja_file_comes_before_the_one_in_the_config(tmp_path: Path) -> None:
    write_tiny_tokenizer(tmp_path)
    (tmp_path / "chat_template.jinja").write_text("from file", encoding="utf-8")
    assert ChatTemplate.from_folder(tmp_path).render(HELLO) == "from file"


def test_the_default_of_several_templates_is_taken(tmp_path: Path) -> None:
    named = [{"name": "tool_use", "template": "T"}, {"name": "default", "template": "D"}]
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"chat_template": named}), encoding="utf-8")
    assert ChatTemplate.from_folder(tmp_path).render(HELLO) == "D"


def test_a_model_without_template_refuses_chats(tmp_path: Path) -> None:
    template = ChatTemplate.from_folder(tmp_path)
    assert not template.exists
    with pytest.raises(InvalidRequest, match="no chat template") as refusal:
        template.render(HELLO)
    assert refusal.value.field == "messages"


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("{{ raise_exception('roles must alternate') }}", "roles must alternate"),
        ("{{ messages[5].content }}", "no element 5"),
        ("{{ messages[0].content + 1 }}", "can only concatenate"),
        ("{{ ''.__class__.__mro__ }}", "unsafe"),
        ("{{ messages.append(1) }}", "unsafe"),
        ("{{ 1 / 0 }}", "division by zero"),
    ],
)
def test_what_a_template_cannot_render_is_an_invalid_request(source: str, reason: str) -> None:
    with pytest.raises(InvalidRequest, match=reason) as refusal:
        ChatTemplate(source, TOKENS).render(HELLO)
    assert refusal.value.field == "messages"


def test_a_prompt_that_grows_too_long_is_refused() -> None:
    template = ChatTemplate("{% for m in messages %}{{ m.content }}{% endfor %}", TOKENS, max_characters=9)
    with pytest.raises(InvalidRequest, match="at most 9 characters"):
        template.render(HELLO * 2)
    assert template.render(HELLO) == "Hello"


class TickingClock(ManualClock):
    """Every look at the clock takes a second."""

    def now_s(self) -> float:
        self.advance(1.0)
        return super().now_s()


@pytest.mark.parametrize(
    "source",
    [
        "{% for i in range(1000) %}{% for j in range(1000) %}{% set x = 1 %}{% endfor %}{% endfor %}",
        "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(40) }}",
    ],
    ids=["silent loops", "macros that call themselves"],
)
def test_a_rendering_that_takes_too_long_is_refused(source: str) -> None:
    template = ChatTemplate(source, TOKENS, clock=TickingClock(), max_render_s=50.0)
    with pytest.raises(InvalidRequest, match="rendered within"):
        template.render(HELLO)


def test_a_broken_template_is_refused_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "chat_template.jinja").write_text("ok\n{% for %}", encoding="utf-8")
    with pytest.raises(ModelRefused, match="line 2"):
        ChatTemplate.from_folder(tmp_path)


def test_fields_of_messages_reach_the_template_as_plain_values() -> None:
    message: dict[str, Any] = {"role": "user", "content": [{"type": "text", "text": "a"}]}
    assert ChatTemplate("{{ messages[0].content[0].text }}", {}).render([message]) == "a"
