"""The values of a model call: what is asked, what is answered, what is remembered."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Any, Literal

from headrace.model.usage import Usage

Role = Literal["system", "user", "assistant"]


class AnswerStyle(StrEnum):
    """What a provider can be asked for; extraction chooses its strategy by it."""

    #: The answer is held to a JSON schema by the provider.
    STRICT_SCHEMA = "strict_schema"
    #: The answer is JSON of any shape; the schema is told in the prompt.
    JSON = "json"
    #: A weak model: one short plain answer at a time.
    PLAIN = "plain"


class FinishReason(StrEnum):
    """Why the model stopped."""

    #: It was done, or met a stop sequence.
    STOP = "stop"
    #: The room for the answer ended first; the text is cut.
    LENGTH = "length"
    #: It declined, or a content filter removed the answer.
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation."""

    role: Role
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionRequest:
    """Everything that determines an answer. Equal requests have equal answers and are paid once."""

    model: str
    messages: tuple[Message, ...]
    #: JSON schema of the answer; None asks for text.
    schema: Mapping[str, Any] | None = None
    schema_name: str = "answer"
    #: Ask for JSON of any shape; only where `schema` is None.
    json_mode: bool = False
    temperature: float = 0.0
    #: Most tokens of the answer; None leaves it to the provider.
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    #: Distinguishes asks that want different answers to the same words; never sent.
    sample: int = 0

    def memo_key(self, provider: str) -> str:
        """sha256 (64 hex digits) over the provider's name and every field, as canonical JSON.

        The endpoint's address is left out on purpose: a proxy or another port gives no other answer.
        """
        ask = {"v": 1, "provider": provider, **asdict(self)}
        text = json.dumps(ask, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(text.encode("ascii")).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a provider answered, before anything reads it."""

    text: str
    finish_reason: FinishReason = FinishReason.STOP
    usage: Usage = field(default_factory=Usage)
    #: The model that answered, as the provider names it (often a dated snapshot).
    model: str = ""
    request_id: str | None = None


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """A paid answer as the memo keeps it."""

    provider: str
    answer: Answer

    def encode(self) -> str:
        """ASCII JSON. Safe for any text column: a model may answer with NUL or lone surrogates, here escaped.

        Not for `jsonb`, which refuses an escaped NUL.
        """
        return json.dumps(asdict(self), ensure_ascii=True, separators=(",", ":"))

    @classmethod
    def decode(cls, text: str) -> StoredAnswer:
        """The inverse of `encode`."""
        data = json.loads(text)
        answer = data["answer"]
        return cls(
            provider=data["provider"],
            answer=Answer(
                text=answer["text"],
                finish_reason=FinishReason(answer["finish_reason"]),
                usage=Usage.from_json(answer["usage"]),
                model=answer["model"],
                request_id=answer["request_id"],
            ),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LLMSettings:
    """Which model answers. Made by the settings; the key never shows in a repr."""

    #: None means: nothing is configured, use the local model.
    model: str | None = None
    #: None means the provider's own endpoint.
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    style: AnswerStyle = AnswerStyle.STRICT_SCHEMA
    #: Total time for one call, from sending to the last byte of the answer.
    timeout: timedelta = timedelta(seconds=90)
