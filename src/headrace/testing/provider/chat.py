"""Chat completions as the wire carries them: the request read, the reply written, whole or as a stream."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

#: A rough token: four characters. Good enough to count, to limit and to pace.
CHARACTERS_PER_TOKEN = 4
_MOST_TOKENS = 1_000_000_000


class BadChatRequestError(ValueError):
    """The request is no chat completion. Its message goes back with status 400."""


@dataclass(frozen=True, kw_only=True)
class ChatRequest:
    """A request for a chat completion, as an `answer` callable receives it."""

    #: 16 hex digits over everything but `stream`: equal requests have equal keys.
    key: str
    model: str
    #: (role, text) in order.
    messages: tuple[tuple[str, str], ...]
    schema: Mapping[str, Any] | None
    json_mode: bool
    stream: bool
    wants_usage: bool
    max_tokens: int | None
    stop: tuple[str, ...]
    #: The body as it was sent.
    body: Mapping[str, Any]

    @cached_property
    def text(self) -> str:
        """All messages, for looking words up in."""
        return "\n\n".join(text for _, text in self.messages)

    @property
    def user_text(self) -> str:
        """The user's messages alone."""
        return "\n\n".join(text for role, text in self.messages if role == "user")

    @property
    def last(self) -> str:
        """The last message."""
        return self.messages[-1][1]

    @cached_property
    def input_tokens(self) -> int:
        """Rough count of the prompt's tokens."""
        return count_tokens(self.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What the scripted model says."""

    text: str | None
    refusal: str | None = None
    finish_reason: str = "stop"
    tool_call: bool = False

    @property
    def output_tokens(self) -> int:
        """Rough count of the answer's tokens."""
        return count_tokens(self.text or self.refusal or "")


def count_tokens(text: str) -> int:
    """Rough count: a token for every four characters begun."""
    return -(-len(text) // CHARACTERS_PER_TOKEN)


def read_chat(raw: bytes) -> ChatRequest:
    """The request in this body. Raises BadChatRequestError that says what is wrong."""
    body = read_json(raw)
    if not isinstance(body, dict) or not isinstance(body.get("messages"), list) or not body["messages"]:
        raise BadChatRequestError("'messages' must be a list that is not empty")
    schema, json_mode = _read_format(_object(body, "response_format"))
    return ChatRequest(
        key=_content_key(body),
        model=str(body.get("model", "")),
        messages=tuple(_read_message(message) for message in body["messages"]),
        schema=schema,
        json_mode=json_mode,
        stream=bool(body.get("stream")),
        wants_usage=bool(_object(body, "stream_options").get("include_usage")),
        max_tokens=_read_most(body, "max_completion_tokens") or _read_most(body, "max_tokens"),
        stop=_read_stops(body.get("stop")),
        body=body,
    )


def read_json(raw: bytes) -> Any:
    """What these bytes say. Raises BadChatRequestError."""
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        raise BadChatRequestError("the body is not JSON") from None


def _object(body: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    given = body.get(name)
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise BadChatRequestError(f"'{name}' must be an object")
    return given


def _read_most(body: Mapping[str, Any], name: str) -> int | None:
    most = body.get(name)
    if most is not None and (type(most) is not int or not 1 <= most <= _MOST_TOKENS):
        raise BadChatRequestError(f"'{name}' must be a whole number from 1 to {_MOST_TOKENS}")
    return most


def _read_stops(given: Any) -> tuple[str, ...]:
    stops = [given] if isinstance(given, str) else given
    if stops is None:
        return ()
    if not isinstance(stops, list) or not all(isinstance(stop, str) and stop for stop in stops):
        raise BadChatRequestError("'stop' must be a text or a list of texts, none of them empty")
    return tuple(stops)


def _content_key(body: Mapping[str, Any]) -> str:
    content = {name: value for name, value in body.items() if name not in ("stream", "stream_options")}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def _read_message(message: Any) -> tuple[str, str]:
    if not isinstance(message, dict) or "role" not in message:
        raise BadChatRequestError("every message needs a 'role' and a 'content'")
    content = message.get("content") or ""
    if isinstance(content, list) and all(isinstance(part, dict) for part in content):
        content = "".join(str(part.get("text", "")) for part in content)
    if not isinstance(content, str):
        raise BadChatRequestError("a message's 'content' must be a text or a list of parts")
    return str(message["role"]), content


def _read_format(given: Mapping[str, Any]) -> tuple[Mapping[str, Any] | None, bool]:
    kind = given.get("type", "text")
    if kind == "json_schema":
        schema = _object(given, "json_schema").get("schema")
        if not isinstance(schema, dict):
            raise BadChatRequestError("'response_format.json_schema.schema' must be an object")
        return schema, False
    return None, kind == "json_object"


def limit(reply: Reply, request: ChatRequest) -> Reply:
    """The reply cut at the request's stop sequences and at its most tokens."""
    text = reply.text
    if text is None:
        return reply
    for stop in request.stop:
        text = text.split(stop, 1)[0]
    reason = reply.finish_reason
    if request.max_tokens and count_tokens(text) > request.max_tokens:
        text, reason = text[: request.max_tokens * CHARACTERS_PER_TOKEN], "length"
    return Reply(text=text, refusal=reply.refusal, finish_reason=reason, tool_call=reply.tool_call)


def usage_of(request: ChatRequest, reply: Reply, cached_tokens: int = 0) -> dict[str, Any]:
    """The `usage` object."""
    asked, answered = request.input_tokens, reply.output_tokens
    usage: dict[str, Any] = {
        "prompt_tokens": asked,
        "completion_tokens": answered,
        "total_tokens": asked + answered,
    }
    if cached_tokens:
        usage["prompt_tokens_details"] = {"cached_tokens": cached_tokens}
    return usage


def whole_body(
    request: ChatRequest, reply: Reply, identity: Mapping[str, Any], cached_tokens: int = 0
) -> dict[str, Any]:
    """The body of an answer that is not streamed; `identity` holds its id, created and model."""
    message: dict[str, Any] = {"role": "assistant", "content": reply.text, "refusal": reply.refusal}
    if reply.tool_call:
        message |= _tool_calls(indexed=False)
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": reply.finish_reason}
    usage = usage_of(request, reply, cached_tokens)
    return {**identity, "object": "chat.completion", "choices": [choice], "usage": usage}


class StreamFrames:
    """A streamed answer as server-sent events: an opening, a frame for each token, and a closing."""

    def __init__(self, request: ChatRequest, reply: Reply, identity: Mapping[str, Any], cached_tokens: int = 0) -> None:
        self._request, self._reply, self._cached_tokens = request, reply, cached_tokens
        self._identity = {**identity, "object": "chat.completion.chunk"}
        self._field, self._text = ("content", reply.text) if reply.refusal is None else ("refusal", reply.refusal)
        before, _, after = self._event(self._choice({self._field: "@"})).rpartition(b'"@"')
        self._before, self._after = before, after

    def opening(self) -> bytes:
        """What comes before the first token."""
        return self._event(self._choice({"role": "assistant", "content": ""}))

    def tokens(self, first: int, last: int, length: int | None = None, each: int = 1) -> bytes:
        """The frames of `each` tokens from token `first` up to and without `last`, of the first `length` characters."""
        text = (self._text or "")[: last * CHARACTERS_PER_TOKEN][:length]
        step = each * CHARACTERS_PER_TOKEN
        parts = (text[start : start + step] for start in range(first * CHARACTERS_PER_TOKEN, len(text), step))
        return b"".join(self._before + json.dumps(part).encode() + self._after for part in parts if part)

    def closing(self) -> bytes:
        """What comes after the last token: the finish reason, the usage where it was asked for, and the end mark."""
        reply = self._reply
        events = [self._event(self._choice(_tool_calls(indexed=True)))] if reply.tool_call else []
        events.append(self._event(self._choice({}, reply.finish_reason)))
        if self._request.wants_usage:
            usage = usage_of(self._request, reply, self._cached_tokens)
            events.append(self._event({"choices": [], "usage": usage}))
        return b"".join(events) + b"data: [DONE]\n\n"

    def _choice(self, delta: Mapping[str, Any], reason: str | None = None) -> dict[str, Any]:
        return {"choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}]}

    def _event(self, body: Mapping[str, Any]) -> bytes:
        return b"data: " + json.dumps({**self._identity, **body}).encode() + b"\n\n"


def _tool_calls(*, indexed: bool) -> dict[str, Any]:
    call = {"id": "call_1", "type": "function", "function": {"name": "look_up", "arguments": "{}"}}
    return {"tool_calls": [{"index": 0, **call} if indexed else call]}
