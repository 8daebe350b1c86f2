"""What the scripted model says to a request, with the faults that lie in its words."""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from headrace.testing.provider.chat import ChatRequest, Reply, limit
from headrace.testing.provider.faults import FaultKind

#: What a user may give as `answer`: text, a JSON-able value, or None for the default answer; may be async.
AnswerFunction = Callable[[ChatRequest], Any | Awaitable[Any]]


async def reply_to(
    request: ChatRequest,
    kind: FaultKind | None,
    *,
    answer: AnswerFunction | None,
    default: Callable[[ChatRequest], str],
) -> Reply:
    """The reply to this request, spoiled where the fault asks for it."""
    said = None if answer is None else answer(request)
    if inspect.isawaitable(said):
        said = await said
    if said is None:
        said = default(request)
    text = said if isinstance(said, str) else json.dumps(said)
    spoil = _SPOILED.get(kind) if kind else None
    return limit(Reply(text=text) if spoil is None else spoil(text), request)


def _wrong_types(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _wrong_types(part) for name, part in value.items()}
    if isinstance(value, list):
        return "not a list"
    return ["neither", "text", "nor", "number"]


def _wrong_type(text: str) -> Reply:
    try:
        return Reply(text=json.dumps(_wrong_types(json.loads(text))))
    except ValueError:
        return Reply(text="[1, 2]")


_SPOILED: Mapping[FaultKind, Callable[[str], Reply]] = {
    FaultKind.TRUNCATED_JSON: lambda text: Reply(text=text[: max(1, len(text) // 2)]),
    FaultKind.WRONG_JSON: lambda text: Reply(text='{"unexpected": {"shape": true}}'),
    FaultKind.WRONG_TYPE: _wrong_type,
    FaultKind.LENGTH: lambda text: Reply(text=text[: max(1, len(text) // 2)], finish_reason="length"),
    FaultKind.REFUSAL: lambda text: Reply(text=None, refusal="I cannot help with that."),
    FaultKind.TOOL_CALL: lambda text: Reply(text=None, finish_reason="tool_calls", tool_call=True),
}
