"""The network's own thread."""

from __future__ import annotations

import asyncio
import threading

import pytest

from outrider_target.drafting.network_thread import NetworkThread


async def nothing() -> None:
    """Ends at once."""


def test_callbacks_run_on_a_thread_of_their_own() -> None:
    network = NetworkThread("test-network")
    names: list[str] = []
    done = threading.Event()
    network.post(lambda: names.append(threading.current_thread().name))
    network.post(done.set)
    assert done.wait(timeout=5)
    network.stop(nothing())
    assert names == ["test-network"]


def test_after_stop_the_thread_is_gone_and_calls_are_ignored() -> None:
    network = NetworkThread("test-network")
    network.stop(nothing())
    assert "test-network" not in {thread.name for thread in threading.enumerate()}
    network.post(lambda: pytest.fail("ran after stop"))
    network.stop(nothing())


def test_stop_waits_for_tasks_that_are_ending() -> None:
    network = NetworkThread("test-network")
    started, ended = threading.Event(), threading.Event()

    async def ending() -> None:
        started.set()
        await asyncio.sleep(0)
        ended.set()

    tasks: list[asyncio.Task[None]] = []
    network.post(lambda: tasks.append(asyncio.create_task(ending())))
    assert started.wait(timeout=5)
    network.stop(nothing())
    assert ended.is_set()
