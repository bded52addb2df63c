"""Draft workers in processes of their own, as Ray or a person starts them."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys

import pytest
from outrider_doubles.draft_bench import FINGERPRINT, VOCAB_SIZE, commit, opening
from outrider_doubles.draft_process import DraftProcess
from outrider_doubles.scripted_proposer import WAIT_S

from outrider_wire.channel import open_channel
from outrider_wire.draft_client import open_draft_stream
from outrider_wire.drafting import PROTOCOL_VERSION, Chain, Hello, VerifierRound

HELLO = Hello(PROTOCOL_VERSION, FINGERPRINT, VOCAB_SIZE, "verifier", lease_ms=30_000)
POOL = {"name": "pool", "method": "ngram"}


async def propose(address: str) -> tuple[Chain, ...]:
    """Open a session at a worker and return what it proposes."""
    channel = open_channel(address)
    stream = await open_draft_stream(channel, HELLO)
    await stream.send(VerifierRound(opens=(opening(1, [1, 2, 3, 1]),), commits=(commit(1, 4, [2], depth=2),)))
    frame = await asyncio.wait_for(stream.receive(), WAIT_S)
    assert frame is not None
    await stream.close()
    await channel.close()
    return frame.chains


async def test_two_processes_serve_and_one_outlives_the_other() -> None:
    with DraftProcess("a", FINGERPRINT, VOCAB_SIZE) as one, DraftProcess("b", FINGERPRINT, VOCAB_SIZE) as two:
        expected = (Chain(1, 1, 5, (3, 1)),)
        assert await propose(one.address) == expected
        assert await propose(two.address) == expected
        one.kill()
        assert await propose(two.address) == expected


async def test_a_process_that_is_told_to_end_ends_well() -> None:
    command = [sys.executable, "-m", "outrider_draft", "--pool-json", json.dumps(POOL), "--grace-s", "0"]
    command += ["--tokenizer-fingerprint", FINGERPRINT, "--vocab-size", str(VOCAB_SIZE)]
    process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
    assert process.stdout is not None
    announced = json.loads(await process.stdout.readline())
    assert announced["pid"] == process.pid and announced["incarnation"]
    assert len(await propose(announced["address"])) == 1
    process.send_signal(signal.SIGTERM)
    assert await asyncio.wait_for(process.wait(), 60) == 0


@pytest.mark.parametrize(
    ("pool", "vocab_size", "words"),
    [
        ('{"name": "p", "method": "nggram"}', "1000", ('"nggram"', "ngram")),
        ('{"name": "p", "method": "ngram", "prompt_lookup_min": 0}', "1000", ("prompt_lookup_min", "got 0")),
        ("[]", "1000", ("--pool-json", "list")),
        ("{", "1000", ("--pool-json",)),
        (json.dumps(POOL), "0", ("--vocab-size", "got 0")),
    ],
)
def test_a_wrong_start_says_why_in_one_line(pool: str, vocab_size: str, words: tuple[str, ...]) -> None:
    command = [sys.executable, "-m", "outrider_draft", "--pool-json", pool]
    command += ["--tokenizer-fingerprint", FINGERPRINT, "--vocab-size", vocab_size]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 2 and ended.stdout == ""
    assert len(ended.stderr.splitlines()) == 1
    assert all(word in ended.stderr for word in words)


def test_help_names_every_argument() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "outrider_draft", "--help"], capture_output=True, text=True, check=True
    )
    for argument in ("--pool-json", "--tokenizer-fingerprint", "--vocab-size", "--host", "--port", "--grace-s"):
        assert argument in ended.stdout


@pytest.mark.parametrize(
    ("modules", "forbidden"),
    [
        # What a CPU drafter loads: neither a tensor library nor Ray, so that it starts fast and stays small.
        (
            "outrider_draft.worker, outrider_draft.ngram_proposer, outrider_draft.suffix_proposer",
            ("torch", "transformers", "ray", "starlette"),
        ),
        # What checking a config loads: not even a compiler.
        ("outrider_draft.config, outrider_draft.methods", ("torch", "transformers", "ray", "numba", "grpc")),
    ],
)
def test_imports_stay_small(modules: str, forbidden: tuple[str, ...]) -> None:
    code = f"import sys, {modules}; print(*sorted({{name.split('.')[0] for name in sys.modules}}))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "outrider_draft" in loaded
    assert not set(forbidden) & set(loaded)
