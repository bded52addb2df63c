"""The driver of the prefill benchmark against scripted servers, and its arithmetic."""

from __future__ import annotations

import asyncio

import pytest
from outrider_doubles.scripted_openai import ScriptedServer, scripted_server

import prefill


def test_every_request_is_a_new_prompt_of_the_asked_length_and_asks_for_one_token() -> None:
    with scripted_server() as url:
        arguments = f"--arm a@{url} --arm b@{url} --lengths 3 5 --repeats 2 --vocab 110".split()
        table = asyncio.run(prefill.measure(prefill.parse_options(arguments)))
    prompts = [tuple(body["prompt"]) for body in ScriptedServer.bodies]
    assert [len(prompt) for prompt in prompts] == [3] * 12 + [5] * 12
    assert len(set(prompts)) > 20
    assert all(100 <= token < 110 for prompt in prompts for token in prompt)
    assert all((body["max_tokens"], body["temperature"]) == (1, 0.0) for body in ScriptedServer.bodies)
    assert [line.split(" | ")[:2] for line in table.splitlines()[2:]] == [
        ["| 3", "a"],
        ["| 3", "b"],
        ["| 5", "a"],
        ["| 5", "b"],
    ]


def test_a_line_shows_the_median_its_extremes_and_the_ratio_to_the_first_arm() -> None:
    assert prefill.table_line(128, "b", [0.2, 0.4, 0.1], [0.4]) == "| 128 | b | 200 (100-400) | 640 | 0.50 |"


def test_an_arm_is_required(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        prefill.parse_options([])
    assert "--arm" in capsys.readouterr().err
