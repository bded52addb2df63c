"""A peer that is stopped or killed is noticed by whoever waits for it, on either side of a connection."""

from __future__ import annotations

import asyncio

import pytest
from outrider_doubles.echo_process import EchoProcess
from outrider_doubles.echo_services import VERIFIER, serving_echo

from outrider_runtime.errors import NotReady
from outrider_wire.channel import KEEPALIVE_TIME_MS, PING_TIMEOUT_MS, open_channel
from outrider_wire.draft_client import open_draft_stream
from outrider_wire.drafting import Chain, Commit, DrafterRound, VerifierRound

# Without the ping timeout a stopped peer goes unnoticed for about 45 s; with it, for a few seconds at most.
NOTICED_WITHIN_S = 25.0
ROUND = VerifierRound(commits=(Commit(1, 1, 0, (5,), 1),))


def test_the_settings_promise_to_notice_long_before_the_bound() -> None:
    assert (KEEPALIVE_TIME_MS + PING_TIMEOUT_MS) / 1000 < NOTICED_WITHIN_S / 3


async def test_a_stopped_worker_is_noticed_while_nothing_is_sent_to_it() -> None:
    with EchoProcess() as worker:
        async with open_channel(await asyncio.to_thread(worker.said)) as channel:
            stream = await open_draft_stream(channel, VERIFIER)
            await stream.send(ROUND)
            assert await stream.receive() == DrafterRound((Chain(1, 1, 0, (5,)),))
            worker.stop()
            async with asyncio.timeout(NOTICED_WITHIN_S):
                with pytest.raises(NotReady):
                    await stream.receive()


async def test_a_killed_worker_is_noticed() -> None:
    with EchoProcess() as worker:
        async with open_channel(await asyncio.to_thread(worker.said)) as channel:
            stream = await open_draft_stream(channel, VERIFIER)
            worker.kill()
            async with asyncio.timeout(NOTICED_WITHIN_S):
                with pytest.raises(NotReady):
                    await stream.receive()


async def test_a_stopped_verifier_is_noticed_by_the_worker() -> None:
    async with serving_echo() as echo:
        with EchoProcess(echo.server.address) as verifier:
            assert await asyncio.to_thread(verifier.said) == "connected"
            assert not echo.drafter.closed.is_set()
            verifier.stop()
            await asyncio.wait_for(echo.drafter.closed.wait(), NOTICED_WITHIN_S)
