"""Chat completions on the wire: the body of a request, and an answer read from whatever bytes came back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from headrace.model.llm import Answer, CompletionRequest, FinishReason
from headrace.model.provider_errors import BadOutputError
from headrace.model.quota import NO_HINT, QuotaHint
from headrace.model.usage import Usage
from headrace.providers.fault import Fault
from headrace.providers.faults import means_something, request_id_of, sort_fault
from headrace.providers.texts import clean_name, clean_text
from headrace.providers.usage import UNKNOWN_USAGE, read_usage


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
    if request.seed is not None:
        body["seed"] = request.seed
    if request.tools:
        body["tools"] = [dict(tool) for tool in request.tools]
    if request.schema is not None:
        schema = {"name": request.schema_name, "schema": dict(request.schema), "strict": True}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    elif request.json_mode:
        body["response_format"] = {"type": "json_object"}
    return body


def clean_messages(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """The body with texts that have UTF-8: what a model said may be told to it again, and need not have any."""
    messages = [{**message, "content": clean_text(message["content"])} for message in body.get("messages", ())]
    return {**body, "messages": messages} if messages else body


class Reader:
    """Reads what one provider sent; `headers` and the hint are those of its response."""

    def __init__(self, provider: str, *, headers: Mapping[str, str] | None = None, hint: QuotaHint = NO_HINT) -> None:
        self._provider, self._headers, self.hint = provider, headers or {}, hint
        self.request_id = request_id_of(self._headers)

    def read_answer(self, raw: bytes) -> Answer:
        """The answer in this body.

        Raises BadOutputError, with the usage where it can be read, when there is none, and the ProviderError of an
        error that was sent with status 200 where its code says which it is.
        """
        return self.answer_in(self.body(raw))

    def answer_in(self, body: Mapping[str, Any]) -> Answer:
        """As `read_answer`, from a body that was JSON."""
        usage = read_usage(body.get("usage"))
        choice = self._first_choice(body, usage)
        message = choice.get("message")
        if not isinstance(message, dict):
            raise self.bad("the answer has no message", usage)
        text = self._text(choice, message, usage)
        reason = finish_reason(choice.get("finish_reason"), refused=bool(message.get("refusal")))
        return self.answer(text, reason, usage=usage, model=body.get("model"), own_id=body.get("id"))

    def answer(self, text: str, reason: FinishReason, *, usage: Usage, model: Any, own_id: Any) -> Answer:
        """An answer with everything that its response says beside it."""
        return Answer(
            text=clean_text(text),
            finish_reason=reason,
            usage=usage,
            model=clean_name(model),
            request_id=self.request_id or clean_name(own_id) or None,
            hint=self.hint,
        )

    def bad(self, error: str, usage: Usage = UNKNOWN_USAGE) -> BadOutputError:
        """The error for bytes that hold no answer."""
        return BadOutputError(
            f"{self._provider} sent no usable answer: {error}",
            errors=[error],
            provider=self._provider,
            request_id=self.request_id,
            usage=usage,
            hint=self.hint,
        )

    def body(self, raw: bytes) -> dict[str, Any]:
        """The object in these bytes."""
        try:
            body = json.loads(raw.decode("utf-8"))
        except UnicodeDecodeError:
            raise self.bad("the body is not UTF-8") from None
        except (ValueError, RecursionError):
            raise self.bad("the body is not JSON") from None
        if not isinstance(body, dict):
            raise self.bad("the body is not an object")
        return body

    def fault(self, body: Mapping[str, Any]) -> Fault:
        """The error in a body that came with status 200."""
        return Fault.of(body, status=200, headers=self._headers, within_answer=True)

    def _first_choice(self, body: Mapping[str, Any], usage: Usage) -> Mapping[str, Any]:
        choices = body.get("choices")
        if isinstance(choices, list) and choices and isinstance(choices[0], dict):
            choice: Mapping[str, Any] = choices[0]
            return choice
        if not body.get("error"):
            raise self.bad("the body holds no choice", usage)
        if means_something(fault := self.fault(body)):
            raise sort_fault(fault, provider=self._provider)
        raise self.bad("the body is an error", usage)

    def _text(self, choice: Mapping[str, Any], message: Mapping[str, Any], usage: Usage) -> str:
        text = message.get("content")
        if text is None:
            text = message.get("refusal")
        if isinstance(text, str):
            return text
        if text is None and choice.get("finish_reason") in ("length", "content_filter"):
            return ""
        raise self.bad("a tool call instead of text" if message.get("tool_calls") else "no text", usage)


def finish_reason(said: Any, *, refused: bool) -> FinishReason:
    """Why the model stopped, from what the provider calls it."""
    if refused or said == "content_filter":
        return FinishReason.REFUSED
    return FinishReason.LENGTH if said == "length" else FinishReason.STOP
