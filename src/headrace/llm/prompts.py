"""What the user gives, as the turns of a conversation."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from headrace.model.errors import InvalidInputError
from headrace.model.llm import Message, Role

_SCHEMA_INSTRUCTION = "Answer with one JSON object that follows this JSON schema, and with nothing else:"
_ROLES = ("system", "user", "assistant")
_STOP = "must be a text that is not empty, or a list of such texts"
_TURN = f"must be {{role, content}} with a role of {', '.join(_ROLES)}"
_TURNS = f"must be a list, each of which {_TURN}"


def conversation(
    prompt: str | None, system: str | None, earlier: Sequence[Message | Mapping[str, str]] = ()
) -> tuple[Message, ...]:
    """System message, earlier turns, then the prompt as the user's last turn. Raises InvalidInputError."""
    if isinstance(earlier, str | bytes | Mapping) or not isinstance(earlier, Iterable):
        raise InvalidInputError("messages", _TURNS, earlier)
    turns = [_turn(message, f"messages[{place}]") for place, message in enumerate(earlier)]
    if system is not None:
        turns.insert(0, Message("system", _text("system", system)))
    if prompt is not None:
        turns.append(Message("user", _text("prompt", prompt)))
    if not any(turn.role == "user" for turn in turns):
        raise InvalidInputError("prompt", "must hold a question (or give messages with one)", prompt)
    return tuple(turns)


def stop_sequences(stop: str | Sequence[str] | None) -> tuple[str, ...]:
    """One or several, as a tuple; None is none. Raises InvalidInputError."""
    given = (stop,) if isinstance(stop, str) else () if stop is None else stop
    if isinstance(given, bytes | Mapping) or not isinstance(given, Iterable):
        raise InvalidInputError("stop", _STOP, stop)
    given = tuple(given)
    if not all(isinstance(one, str) and one for one in given):
        raise InvalidInputError("stop", _STOP, stop)
    return tuple(_text("stop", one) for one in given)


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
        if message.role not in _ROLES:
            raise InvalidInputError(field, _TURN, message)
        _text(field, message.content)
        return message
    if not isinstance(message, Mapping) or set(message) != {"role", "content"} or message["role"] not in _ROLES:
        raise InvalidInputError(field, _TURN, message)
    role, content = message["role"], message["content"]
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
