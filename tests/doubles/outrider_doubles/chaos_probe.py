"""Asks a real draft worker how many sessions it holds, as a verifier of its own."""

from __future__ import annotations

import asyncio

from outrider_wire.channel import open_channel
from outrider_wire.draft_client import open_draft_stream
from outrider_wire.drafting import PROTOCOL_VERSION, Close, CloseOutcome, Commit, Hello, Open, VerifierRound

_WAIT_S = 30.0


async def sessions_held(address: str, tokenizer_fingerprint: str, vocab_size: int, max_sessions: int) -> int:
    """Sessions that all other verifiers hold at the worker behind `address`, by its own report.

    Args:
        address: host:port of the worker.
        tokenizer_fingerprint: what it drafts for.
        vocab_size: what it drafts for.
        max_sessions: of its pool.
    """
    hello = Hello(PROTOCOL_VERSION, tokenizer_fingerprint, vocab_size, "probe", lease_ms=1000)
    channel = open_channel(address)
    try:
        async with asyncio.timeout(_WAIT_S):
            stream = await open_draft_stream(channel, hello)
            await stream.send(VerifierRound((Open(1, 1, (1, 1, 1), 3, 1),), (Commit(1, 1, 3, (), 1),)))
            frame = await stream.receive()
            await stream.send(VerifierRound(closes=(Close(1, 1, CloseOutcome.ABORTED),)))
            await stream.close()
    finally:
        await channel.close()
    assert frame is not None and frame.load is not None, "the first answer of a stream tells the load"
    return max_sessions - frame.load.free_sessions - 1
