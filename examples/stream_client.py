"""Streams a chat answer with OpenAI's own client, steering speculation for this one request.

python examples/stream_client.py [URL]
"""

from __future__ import annotations

import argparse
import sys

import httpx
from openai import OpenAI, OpenAIError

QUESTION = "Explain in two sentences why ice floats on water."


def main() -> int:
    parser = argparse.ArgumentParser(description="Streams a chat answer with OpenAI's own client.")
    parser.add_argument("url", nargs="?", default="http://127.0.0.1:8000", metavar="URL", help="of a gateway")
    url = parser.parse_args().url
    try:
        stream_answer(url)
    except (OpenAIError, httpx.HTTPError) as error:  # the client lets a stream that breaks off raise httpx's own
        print(f"no answer from {url}: {error}", file=sys.stderr)
        return 1
    return 0


def stream_answer(url: str) -> None:
    client = OpenAI(base_url=f"{url}/v1", api_key="not needed unless the gateway has api_keys")
    model = client.models.list().data[0].id
    stream = client.chat.completions.create(
        model=model,
        messages=[{"role": "user", "content": QUESTION}],
        max_tokens=96,
        temperature=0.7,
        seed=7,  # the same seed gives the same text, whatever the drafts were
        stream=True,
        stream_options={"include_usage": True},
        extra_body={"speculation": {"max_depth": 4}},  # 0 turns speculation off
    )
    for chunk in stream:
        if chunk.choices:
            print(chunk.choices[0].delta.content or "", end="", flush=True)
        elif chunk.usage is not None:
            extra = chunk.model_extra or {}
            print(f"\n\n{chunk.usage.completion_tokens} tokens, {extra.get('metrics')}")


if __name__ == "__main__":
    raise SystemExit(main())
