"""Streams an answer over gRPC, through the same dataclasses that the servers use.

    python examples/grpc_client.py [HOST:PORT]

Other languages use `protos/outrider/v1/generate.proto`; the server answers reflection and health checks.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from contextlib import aclosing

from outrider_runtime.errors import OutriderError
from outrider_wire.channel import open_channel
from outrider_wire.generate_client import GenerateClient
from outrider_wire.generation import GenerationRequest
from outrider_wire.sampling import SamplingParams, SpeculationOptions

DEADLINE_S = 60.0


def main() -> int:
    parser = argparse.ArgumentParser(description="Streams an answer over gRPC.")
    parser.add_argument("address", nargs="?", default="127.0.0.1:9000", metavar="HOST:PORT", help="of a gateway")
    address = parser.parse_args().address
    try:
        asyncio.run(stream_answer(address))
    except OutriderError as error:
        print(f"no answer from {address}: {error}", file=sys.stderr)
        return 1
    return 0


async def stream_answer(address: str) -> None:
    request = GenerationRequest(
        prompt_text="The three largest oceans of the Earth are",
        sampling=SamplingParams(temperature=0.7, seed=7, max_tokens=48),
        speculation=SpeculationOptions(max_depth=4),  # 0 turns speculation off; the tokens stay the same
    )
    async with (
        open_channel(address) as channel,
        aclosing(GenerateClient(channel).generate(request, DEADLINE_S)) as answer,
    ):
        async for delta in answer:
            print(delta.text, end="", flush=True)
            if delta.finished is not None:
                end = delta.finished
                accepted, proposed = end.speculation.num_accepted_draft_tokens, end.speculation.num_draft_tokens
                print(f"\n\n{end.reason.value} after {end.completion_tokens} tokens, seed {end.seed}")
                print(f"{accepted} of {proposed} proposed tokens accepted in {end.speculation.num_spec_steps} rounds")


if __name__ == "__main__":
    raise SystemExit(main())
