"""What the user gives, as the turns of a conversation."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from headrace.model.errors import InvalidInputError
from headrace.model.llm import Message, Role

_SCHEMA_INSTRUCTION = "Answer with one JSON object that follows this JSON schema, and with nothing else:"
_ROLES = ("system", "user", "assistant")


def conversation(
    prompt: str | None, system: str | None, earlier: Sequence[Message | Mapping[str, str]] = ()
) -> tuple[Message, ...]:
    """System message, earlier turns, then the prompt as the user's last turn. Raises InvalidInputError."""
    turns = [_turn(message, f"messages[{place}]") for place, message in enumerate(earlier)]
    if system is not None:
        turns.insert(0, Message("system", _text("system", system)))
    if prompt is not None:
        turns.append(Message("user", _text("prompt", prompt)))
    if not any(turn.role == "user" for turn in turns):
        raise InvalidInputError("prompt", "must hold a question (or give messages with one)", prompt)
    return tuple(turns)


def with_schema(messages: Sequence[Message], schema: Mapping[str, Any]) -> tuple[Message, ...]:
    """The conversation with a JSON schema told in its system message: what equal asks share stands first."""
    told = json.dumps(schema, separators=(",", ":"), ensure_ascii=False)
    instruction = f"{_SCHEMA_INSTRUCTION}\n{told}"
    first, *rest = messages
    if first.role == "system":
        return (Message("system", f"{first.content}\n\n{instruction}"), *rest)
    return (Message("system", instruction), first, *rest)


def _turn(message: Message | Mapping[str, str], field: str) -> Message:
    if isinstance(message, Message):
        _text(field, message.content)
        return message
    role, content = message.get("role"), message.get("content")
    if role not in _ROLES or set(message) != {"role", "content"}:
        raise InvalidInputError("messages", f"must be {{role, content}} with a role of {', '.join(_ROLES)}", message)
    return Message(cast(Role, role), _text(field, content))


def _text(field: str, value: Any) -> str:
    if not isinstance(value, str):
        raise InvalidInputError(field, "must be text", value)
    # ASCII is known as such without a look at its characters.
    if not value.isascii():
        try:
            value.encode("utf-8")
        except UnicodeEncodeError as error:
            place = error.start
            rule = f"must be Unicode: character {place} is half of a surrogate pair, as from bytes read as another text"
            raise InvalidInputError(field, rule, value[max(0, place - 20) : place + 20]) from None
    return value
