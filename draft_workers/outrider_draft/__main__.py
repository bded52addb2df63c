"""A draft worker in a process of its own, without Ray: `python -m outrider_draft`. SIGUSR1 clears its corpus."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import sys

from outrider_draft.identity import WorkerIdentity
from outrider_draft.methods import parse_pool
from outrider_draft.worker import DraftWorker
from outrider_runtime.errors import InvalidConfig


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m outrider_draft",
        description="Serve drafts over gRPC until told to end. Prints one JSON line with its address when it serves.",
    )
    parser.add_argument("--pool-json", required=True, help="settings of the pool as a JSON object with name and method")
    parser.add_argument("--tokenizer-fingerprint", required=True, help="fingerprint of the target's tokenizer")
    parser.add_argument("--vocab-size", required=True, type=int, help="number of token ids of the target")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", default=0, type=int, help="port to listen on; 0 takes a free one (default)")
    parser.add_argument("--grace-s", default=5.0, type=float, help="seconds for sessions to end (default: %(default)s)")
    return parser.parse_args()


def _make_worker(arguments: argparse.Namespace) -> DraftWorker:
    try:
        keys = json.loads(arguments.pool_json)
    except json.JSONDecodeError as error:
        raise InvalidConfig(f"--pool-json: {error}") from error
    if not isinstance(keys, dict):
        raise InvalidConfig(f"--pool-json: got {type(keys).__name__}, allowed: an object")
    if arguments.vocab_size < 1:
        raise InvalidConfig(f"--vocab-size: got {arguments.vocab_size}, allowed: at least 1")
    identity = WorkerIdentity(arguments.tokenizer_fingerprint, arguments.vocab_size)
    return DraftWorker(parse_pool(keys), identity, arguments.host, arguments.port)


async def _serve(arguments: argparse.Namespace) -> None:
    told_to_end = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told_to_end.set)
    worker = _make_worker(arguments)
    clearing: set[asyncio.Task[bool]] = set()

    def clear() -> None:
        task = asyncio.create_task(worker.clear_corpus(), name="outrider-draft-clear")
        clearing.add(task)
        task.add_done_callback(clearing.discard)

    loop.add_signal_handler(signal.SIGUSR1, clear)
    address = await worker.start()
    print(json.dumps({"address": address, "incarnation": worker.incarnation, "pid": os.getpid()}), flush=True)
    await told_to_end.wait()
    await worker.stop(arguments.grace_s)


def main() -> int:
    """Serve until SIGTERM or SIGINT. Returns the exit status."""
    try:
        asyncio.run(_serve(_arguments()))
    except (InvalidConfig, OSError) as error:
        print(f"outrider_draft: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
