"""Chat completions on the wire: the body of a request, and an answer read from whatever bytes came back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from headrace.model.llm import Answer, CompletionRequest, FinishReason
from headrace.model.provider_errors import BadOutputError
from headrace.model.usage import Usage


def request_body(request: CompletionRequest, *, limit_name: str) -> dict[str, Any]:
    """The JSON body of this request; `limit_name` is what the endpoint calls the most tokens of an answer."""
    body: dict[str, Any] = {
        "model": request.model,
        "messages": [{"role": message.role, "content": message.content} for message in request.messages],
        "temperature": request.temperature,
    }
    if request.max_tokens is not None:
        body[limit_name] = request.max_tokens
    if request.stop:
        body["stop"] = list(request.stop)
    if request.schema is not None:
        schema = {"name": request.schema_name, "schema": dict(request.schema), "strict": True}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    elif request.json_mode:
        body["response_format"] = {"type": "json_object"}
    return body


def read_answer(raw: bytes, *, provider: str, request_id: str | None) -> Answer:
    """The answer in this body. Raises BadOutputError, with the usage where it can be read, when there is none."""
    reader = _Reader(provider, request_id)
    body = reader.body(raw)
    usage = _usage(body.get("usage"))
    choice = reader.first_choice(body, usage)
    message = choice.get("message")
    if not isinstance(message, dict):
        raise reader.bad("the answer has no message", usage)
    return Answer(
        text=reader.text(choice, message, usage),
        finish_reason=_finish_reason(choice, message),
        usage=usage,
        model=str(body.get("model") or ""),
        request_id=request_id or _text_or_none(body.get("id")),
    )


class _Reader:
    def __init__(self, provider: str, request_id: str | None) -> None:
        self._provider, self._request_id = provider, request_id

    def bad(self, error: str, usage: Usage | None = None) -> BadOutputError:
        return BadOutputError(
            f"{self._provider} sent no usable answer: {error}",
            errors=[error],
            provider=self._provider,
            request_id=self._request_id,
            usage=usage,
        )

    def body(self, raw: bytes) -> dict[str, Any]:
        try:
            body = json.loads(raw.decode("utf-8"))
        except UnicodeDecodeError:
            raise self.bad("the body is not UTF-8") from None
        except (ValueError, RecursionError):
            raise self.bad("the body is not JSON") from None
        if not isinstance(body, dict):
            raise self.bad("the body is not an object")
        return body

    def first_choice(self, body: Mapping[str, Any], usage: Usage) -> Mapping[str, Any]:
        choices = body.get("choices")
        if isinstance(choices, list) and choices and isinstance(choices[0], dict):
            choice: Mapping[str, Any] = choices[0]
            return choice
        raise self.bad("the body is an error" if body.get("error") else "the body holds no choice", usage)

    def text(self, choice: Mapping[str, Any], message: Mapping[str, Any], usage: Usage) -> str:
        text = message.get("content")
        if text is None:
            text = message.get("refusal")
        if isinstance(text, str):
            return text
        if text is None and choice.get("finish_reason") in ("length", "content_filter"):
            return ""
        raise self.bad("a tool call instead of text" if message.get("tool_calls") else "no text", usage)


def _finish_reason(choice: Mapping[str, Any], message: Mapping[str, Any]) -> FinishReason:
    reason = choice.get("finish_reason")
    if message.get("refusal") or reason == "content_filter":
        return FinishReason.REFUSED
    return FinishReason.LENGTH if reason == "length" else FinishReason.STOP


def _usage(data: Any) -> Usage:
    counts = data if isinstance(data, dict) else {}
    asked, answered = counts.get("prompt_tokens"), counts.get("completion_tokens")
    return Usage(
        input_tokens=asked if isinstance(asked, int) else 0,
        output_tokens=answered if isinstance(answered, int) else 0,
        calls=1,
    )


def _text_or_none(value: Any) -> str | None:
    return value if isinstance(value, str) else None
