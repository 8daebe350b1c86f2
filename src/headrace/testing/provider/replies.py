"""What the scripted model says to a request."""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Callable
from typing import Any

from headrace.testing.provider.chat import ChatRequest, Reply, limit
from headrace.testing.provider.faults import Strike
from headrace.testing.provider.spoiling import spoiled

#: What a user may give as `answer`: text, a JSON-able value, or None for the default answer; may be async.
AnswerFunction = Callable[[ChatRequest], Any | Awaitable[Any]]


async def reply_to(
    request: ChatRequest,
    strike: Strike | None,
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
    return limit(spoiled(text, request, strike), request)
