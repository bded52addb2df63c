"""One message of a chat request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator

from outrider_cluster.gateway.body_model import Body, NeutralOnly, neutral
from outrider_runtime.errors import shorten


def _joined(content: object) -> object:
    """Text of a list of parts, joined as vLLM joins it."""
    if not isinstance(content, list):
        return content
    for part in content:
        if not isinstance(part, dict) or part.get("type") != "text" or not isinstance(part.get("text"), str):
            raise ValueError('text, or a list of {"type": "text", "text": …} (images and audio are not supported)')
        if unknown := part.keys() - {"type", "text"}:
            raise ValueError(f'parts with the keys "type" and "text" only, not {shorten(min(unknown))}')
    return "\n".join(part["text"] for part in content)


class MessageBody(Body):
    """One message of a conversation."""

    ignored: ClassVar[frozenset[str]] = frozenset({"annotations"})
    neutral_only: ClassVar[Mapping[str, NeutralOnly]] = {
        "tool_calls": neutral([]),
        "function_call": neutral(),
        "audio": neutral(),
        "refusal": neutral(),
    }

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: Annotated[str, BeforeValidator(_joined)]
    name: str | None = None
    tool_call_id: str | None = None

    def for_template(self) -> dict[str, object]:
        """As chat templates expect it: `developer` is OpenAI's newer word for `system`."""
        message: dict[str, object] = {
            "role": "system" if self.role == "developer" else self.role,
            "content": self.content,
        }
        extras = {"name": self.name, "tool_call_id": self.tool_call_id}
        return message | {key: value for key, value in extras.items() if value is not None}
