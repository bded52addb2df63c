"""Every pool is asked for all prompts twice."""

from __future__ import annotations

import asyncio

from outrider_doubles.scripted_openai import ScriptedServer, scripted_server

import cold_and_warm
from load_block import Prompt

PROMPTS = [Prompt("copy", "say it again"), Prompt("chat", "say something")]


def test_every_pool_is_asked_for_all_prompts_cold_and_then_warm() -> None:
    with scripted_server() as url:
        options = cold_and_warm.parse_options(f"--url {url} --pool a --pool b --seed 5".split())
        rows = asyncio.run(cold_and_warm.measure(options, PROMPTS))
    asked = [(body["speculation"]["pool"], body["seed"]) for body in ScriptedServer.bodies]
    assert asked == [("a", 5), ("a", 6)] * 2 + [("b", 5), ("b", 6)] * 2
    assert [row.arm for row in rows] == ["a, cold", "a, warm", "b, cold", "b, warm"]
    assert cold_and_warm.table(rows).splitlines()[2] == "| a, cold | 50% | 3.00 | 3.00 | 3.00 | 2 of 2 |"
