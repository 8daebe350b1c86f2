"""A streamed chat completion read from bytes, however they are cut, and from servers that keep few of the rules.

It ends with `[DONE]`, or with a finish reason where a server never sends that; anything else was cut.
"""

from __future__ import annotations

import json
from typing import Any

from pydantic_core import from_json

from headrace.model.llm import Answer
from headrace.model.provider_errors import BadOutputError, ProviderUnavailableError
from headrace.providers.alike import AlikeEvents
from headrace.providers.bounds import LARGEST_ANSWER, too_large
from headrace.providers.chat import Reader, finish_reason
from headrace.providers.faults import sort_fault
from headrace.providers.texts import clean_text, split_half
from headrace.providers.usage import UNKNOWN_USAGE, read_usage

_DONE = "[DONE]"
#: Before the JSON of an event.
_DATA = b"data: "
#: What streams begin with, and no JSON does.
_EVENTS = (b"data:", b"event:", b":")
#: What a line costs in memory beside its text: an event of a million short ones is long.
_LINE_OVERHEAD = 64


class AnswerStream:
    """Takes the bytes of one streamed answer and gives its text as it comes.

    Errors are of `complete`'s classes; all say that the call may have been paid for.
    """

    def __init__(self, provider: str, reader: Reader) -> None:
        self._provider, self._reader = provider, reader
        self._line = bytearray()
        #: Data lines of an event whose JSON is not whole yet.
        self._pending: list[str] = []
        self._pending_size = 0
        self._parts: list[str] = []
        self._size = 0
        self._alike = AlikeEvents(_DATA)
        #: Of a character that two events share.
        self._half = ""
        self._usage = UNKNOWN_USAGE
        self._model: Any = None
        self._own_id: Any = None
        self._reason: Any = None
        self._is_refused = self._is_tool_call = False
        self.is_done = False

    def feed(self, data: bytes) -> str:
        """Take bytes; return the text that they complete, perhaps none."""
        known, at = len(self._parts), 0
        while True:
            if self._alike.is_known and not (self._line or self._pending or self.is_done):
                # What they say beside their text was taken in with the one that was read.
                text, at = self._alike.read(data, at)
                if text:
                    self._take_text(text)
            end = data.find(b"\n", at)
            if end < 0:
                break
            line, at = data[at:end], end + 1
            if self._line:
                line = bytes(self._line + line)
                self._line.clear()
            if line or self._pending:
                self._take_line(line)
        self._line += data[at:]
        if len(self._line) + self._pending_size > LARGEST_ANSWER:
            raise too_large()
        return "".join(self._parts[known:])

    def take(self, body: Any) -> str:
        """Take one event that is read already; return its text, perhaps none."""
        known = len(self._parts)
        self._take_event(body)
        return "".join(self._parts[known:])

    def finish(self) -> Answer:
        """The whole answer, once no more bytes come."""
        if not self.is_done and self._line:
            self._take_line(bytes(self._line))
        self._end_event()
        if not self.is_done and self._reason is None:
            raise self.cut()
        if self._is_tool_call and not self._parts:
            raise self._reader.bad("a tool call instead of text", self._usage)
        if self._reason is None and not self._parts:
            raise self._reader.bad("the stream holds no choice", self._usage)
        return self._reader.answer(
            "".join(self._parts),
            finish_reason(self._reason, refused=self._is_refused),
            usage=self._usage,
            model=self._model,
            own_id=self._own_id,
        )

    def _take_line(self, line: bytes) -> None:
        if not self._pending and not self.is_done and (body := _read_quickly(line)) is not None:
            known = len(self._parts)
            self._take_event(body)
            if self._reason is None and len(self._parts) == known + 1:
                self._alike.learn(line, body)
            return
        try:
            text = line.decode("utf-8").rstrip("\r")
        except UnicodeDecodeError:
            raise self._broken("the stream is not UTF-8") from None
        if self.is_done or (text and not text.startswith("data:")):
            return  # a comment that keeps the connection alive, or a field that says nothing here
        if not text:
            self._end_event()
            return
        said = text.removeprefix("data:").removeprefix(" ")
        if not self._pending and said.strip() == _DONE:
            self.is_done = True
            self._end_text()
        # Most servers put an event on one line, and some forget the empty one behind it.
        elif not self._pending and (body := _read_json(said)) is not None:
            self._take_event(body)
        else:
            self._pending.append(said)
            self._pending_size += len(said) + _LINE_OVERHEAD

    def _end_event(self) -> None:
        if not self._pending:
            return
        body = _read_json("\n".join(self._pending))
        if body is None:
            raise self._broken("an event is not JSON")
        self._pending, self._pending_size = [], 0
        self._take_event(body)

    def _take_event(self, body: Any) -> None:
        if not isinstance(body, dict):
            raise self._broken("an event is not an object")
        if body.get("error"):
            raise sort_fault(self._reader.fault(body), provider=self._provider)
        self._model, self._own_id = self._model or body.get("model"), self._own_id or body.get("id")
        # Groq has it elsewhere.
        groq = body.get("x_groq")
        counts = body.get("usage") or (groq.get("usage") if isinstance(groq, dict) else None)
        if counts:
            self._usage = read_usage(counts)
        choices = body.get("choices")
        if isinstance(choices, list) and choices and isinstance(choices[0], dict):
            self._take_choice(choices[0])

    def _take_choice(self, choice: dict[str, Any]) -> None:
        self._reason = choice.get("finish_reason") or self._reason
        delta = choice.get("delta")
        if not isinstance(delta, dict):
            return
        self._is_tool_call = self._is_tool_call or bool(delta.get("tool_calls"))
        self._is_refused = self._is_refused or bool(delta.get("refusal"))
        for name in ("content", "refusal"):
            text = delta.get(name)
            if isinstance(text, str) and text:
                self._take_text(text)
        if self._reason is not None:
            self._end_text()

    def _take_text(self, text: str) -> None:
        if self._half or not text.isascii():
            text, self._half = split_half(self._half + text)
        if text:
            self._parts.append(clean_text(text))
            self._size += len(text)
            if self._size > LARGEST_ANSWER:
                raise too_large()

    def _end_text(self) -> None:
        if self._half:
            self._parts.append(clean_text(self._half))
            self._half = ""

    def _broken(self, error: str) -> BadOutputError:
        return self._reader.bad(error, self._usage)

    def cut(self) -> ProviderUnavailableError:
        """The error for a stream that ended before its answer did."""
        return ProviderUnavailableError(
            f"{ProviderUnavailableError.__doc__} ({self._provider}: the stream ended in the midst of the answer)",
            provider=self._provider,
            maybe_paid=True,
        )


class WholeAnswer:
    """Takes the bytes of an answer that came whole, though a stream was asked for; errors as of `AnswerStream`."""

    def __init__(self, provider: str, reader: Reader) -> None:
        self._provider, self._reader = provider, reader
        self._raw = bytearray()
        self.is_done = False

    def feed(self, data: bytes) -> str:
        """Take bytes; nothing of the text is known before the last of them."""
        self._raw += data
        return ""

    def finish(self) -> Answer:
        """The answer, once no more bytes come."""
        if not self._raw.lstrip().startswith(_EVENTS):
            return self._reader.read_answer(bytes(self._raw))
        # A stream after all, by the wrong name.
        stream = AnswerStream(self._provider, self._reader)
        stream.feed(bytes(self._raw))
        return stream.finish()


def _read_quickly(line: bytes) -> Any:
    """The event on a line of its own, as nearly all are; None for whatever else the line is.

    A second reader, for speed: what only Python's takes, such as half of a surrogate pair, is left to that.
    """
    if not line.startswith(_DATA + b"{"):
        return None
    try:
        return from_json(line[len(_DATA) :])
    except ValueError:
        return None


def _read_json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
