"""Jinja for chat templates: the names that model authors rely on, in a sandbox, with an end to every loop.

The template comes from the model's folder, the data from clients. What clients send must not be able to make a
template run long; so each loop round and macro call asks the meter whether to go on.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextvars import ContextVar
from datetime import datetime
from typing import Any

import jinja2
from jinja2 import nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

Meter = Callable[[], None]
"""Called at every loop round and macro call; raises to end the rendering."""

current_meter: ContextVar[Meter] = ContextVar("current_meter")
"""The meter of the rendering in progress."""


class TemplateAskedToFail(jinja2.TemplateError):
    """The template called `raise_exception`: it does not accept these messages."""


def make_environment(now: Callable[[], datetime]) -> jinja2.Environment:
    """The environment in which transformers compiles chat templates, plus the meter.

    Args:
        now: local time for `strftime_now`.
    """
    environment = _MeteredEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[_GenerationTag, _MeterHook, loopcontrols]
    )
    environment.filters["tojson"] = _tojson
    environment.globals["raise_exception"] = _raise_exception
    environment.globals["strftime_now"] = lambda form: now().strftime(form)
    return environment


def _tojson(
    value: object,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: Any = None,
    sort_keys: bool = False,
) -> str:
    """Plain JSON; Jinja's own filter would escape HTML characters, which no model was trained on."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _raise_exception(message: str) -> None:
    raise TemplateAskedToFail(message)


class _GenerationTag(Extension):
    """``{% generation %}`` marks text for training; here it is transparent."""

    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class _MeterHook(Extension):
    """Gives compiled templates a way to call the meter."""

    def tick(self) -> None:
        current_meter.get()()


class _MeteredEnvironment(ImmutableSandboxedEnvironment):
    """Adds a call of the meter to the start of every loop and macro body."""

    def _generate(self, source: nodes.Template, *args: Any, **kwargs: Any) -> str:
        loops_and_macros: list[nodes.For | nodes.Macro] = [*source.find_all(nodes.For), *source.find_all(nodes.Macro)]
        for block in loops_and_macros:
            hook = nodes.ExtensionAttribute(_MeterHook.identifier, "tick")
            tick = nodes.ExprStmt(nodes.Call(hook, [], [], None, None)).set_lineno(block.lineno)
            tick.set_environment(self)
            block.body.insert(0, tick)
        return super()._generate(source, *args, **kwargs)
