"""The requests for one object that was not valid: all of it again, or only those of its parts that were wrong."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from pydantic import BaseModel

from headrace.llm.ladder.patches import Patch
from headrace.llm.schema import schema_name, strict_schema
from headrace.model.llm import CompletionRequest, Message

_LEAST_MORE_ROOM = 256
#: Of a wrong answer the model sees this much again.
_LONGEST_ECHO = 4_000


def with_more_room(request: CompletionRequest) -> CompletionRequest:
    """The same ask for a longer answer; where no more room can be given, for a shorter one."""
    if request.max_tokens is not None:
        return replace(request, max_tokens=max(request.max_tokens * 2, request.max_tokens + _LEAST_MORE_ROOM))
    shorter = Message("user", "Your answer was too long and was cut off. Answer again, complete and much shorter.")
    return replace(request, messages=(*request.messages, shorter))


def with_errors(request: CompletionRequest, text: str, errors: Sequence[str]) -> CompletionRequest:
    """The same ask with the answer and what is wrong with it."""
    # The whole exchange so far: a second repair that repeats the words of the first would be the same request.
    feedback = (
        f"That answer is not valid:\n{_listed(errors)}\n"
        "Answer again with the whole corrected JSON object and nothing else."
    )
    said = Message("assistant", text[:_LONGEST_ECHO] or "(nothing)")
    return replace(request, messages=(*request.messages, said, Message("user", feedback)))


def for_parts(request: CompletionRequest, model: type[BaseModel], patch: Patch, *, attempt: int) -> CompletionRequest:
    """The ask for the wrong parts alone, each under a key of its own."""
    keys = ", ".join(json.dumps(key) for key in patch.keys)
    again = f" (try {attempt})" if attempt > 1 else ""
    feedback = (
        f"These parts of your answer are not valid:\n{_listed(patch.errors)}\nThe rest is kept. "
        f"Answer with a JSON object that holds just {keys}, corrected, and nothing else{again}."
    )
    said = json.dumps(patch.current, ensure_ascii=False)[:_LONGEST_ECHO]
    messages = (*request.messages, Message("assistant", said), Message("user", feedback))
    if request.schema is None:
        return replace(request, messages=messages)
    schema = strict_schema(patch.shape(model))
    return replace(request, messages=messages, schema=schema, schema_name=f"{schema_name(model)[:58]}_parts")


def _listed(errors: Sequence[str]) -> str:
    return "\n".join(f"- {error}" for error in errors)
