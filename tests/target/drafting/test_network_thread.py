"""The network's own thread."""

from __future__ import annotations

import asyncio
import threading

import pytest

from outrider_target.drafting.network_thread import NetworkThread, Nudge


def _wait(event: threading.Event) -> None:
    assert event.wait(timeout=60)


async def nothing() -> None:
    """Ends at once."""


def test_callbacks_run_on_a_thread_of_their_own() -> None:
    network = NetworkThread("test-network")
    names: list[str] = []
    done = threading.Event()
    network.post(lambda: names.append(threading.current_thread().name))
    network.post(done.set)
    assert done.wait(timeout=60)
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
    assert started.wait(timeout=60)
    network.stop(nothing())
    assert ended.is_set()


def test_a_nudge_waits_only_once_however_often_it_is_wanted_while_the_loop_is_busy() -> None:
    network = NetworkThread("test-network")
    held, ran = threading.Event(), threading.Semaphore(0)
    nudge = Nudge(network, ran.release)
    network.post(lambda: _wait(held))
    for _ in range(1000):
        nudge()
    held.set()
    assert ran.acquire(timeout=60)
    nudge()
    assert ran.acquire(timeout=60)  # wanted after it ran, so it runs once more
    network.stop(nothing())
    assert not ran.acquire(blocking=False)


def test_a_nudge_that_comes_while_its_callback_runs_is_not_lost() -> None:
    network = NetworkThread("test-network")
    running, held, ends = threading.Event(), threading.Event(), threading.Semaphore(0)

    def callback() -> None:
        running.set()
        held.wait(timeout=60)
        ends.release()

    nudge = Nudge(network, callback)
    nudge()
    assert running.wait(timeout=60)
    nudge()
    held.set()
    assert ends.acquire(timeout=60) and ends.acquire(timeout=60)
    network.stop(nothing())
