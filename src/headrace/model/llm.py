"""The values of a model call: what is asked, what is answered, what is remembered."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import timedelta
from enum import StrEnum
from typing import Any, Literal
from urllib.parse import urlsplit

from headrace.model.prices import Price
from headrace.model.quota import NO_HINT, PoolLimits, QuotaHint
from headrace.model.usage import Usage

Role = Literal["system", "user", "assistant"]

#: Where the provider "openai" asks unless it is told otherwise.
OPENAI_URL = "https://api.openai.com/v1"
_PORTS = {"http": 80, "https": 443}


def endpoint_of(url: str) -> str:
    """Return which server a URL names: host, port unless it is the usual one, and path; nothing that may be secret.

    >>> endpoint_of("https://user:secret@API.example:443/v1/"), endpoint_of("http://127.0.0.1:8000/v1")
    ('api.example/v1', '127.0.0.1:8000/v1')
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        # What the provider will refuse.
        return ""
    shown = "" if port is None or port == _PORTS.get(parts.scheme) else f":{port}"
    return f"{parts.hostname or ''}{shown}{parts.path.rstrip('/')}"


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
    #: Functions the model may call, as the provider takes them.
    tools: tuple[Mapping[str, Any], ...] = ()
    #: Sent where the provider takes one.
    seed: int | None = None

    def memo_key(self, provider: str, *, tenant: str | None = None, endpoint: str = "") -> str:
        """sha256 (64 hex digits) over the provider's name and every field, as canonical JSON.

        `tenant`: whose memo it is; None: everybody's. `endpoint`: `LLMSettings.memo_endpoint`, for two servers may call
        different models by one name; empty: the provider's own.
        """
        # What is not used is left out: keys of a version that did not know it stay as they were.
        unused = {name for name in ("tools", "seed") if not getattr(self, name) and getattr(self, name) != 0}
        # Not `asdict`: it copies whole schemas, to be written once.
        ask: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self)}
        ask["messages"] = [{"role": turn.role, "content": turn.content} for turn in self.messages]
        ask = {name: value for name, value in ask.items() if name not in unused}
        ask |= {"v": 1, "provider": provider} | ({} if tenant is None else {"tenant": tenant})
        ask |= {"endpoint": endpoint} if endpoint else {}
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
    #: What the provider says of its quota beside the answer; it is not kept.
    hint: QuotaHint = field(default=NO_HINT, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class TextPart:
    """A part of an answer's text, as it arrives."""

    text: str


@dataclass(frozen=True, slots=True)
class Embeddings:
    """Vectors, one for each text, and what they cost."""

    vectors: tuple[tuple[float, ...], ...]
    usage: Usage = field(default_factory=Usage)
    model: str = ""
    request_id: str | None = None
    hint: QuotaHint = field(default=NO_HINT, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """A paid answer as the memo keeps it."""

    provider: str
    answer: Answer

    def encode(self) -> str:
        """ASCII JSON. Safe for any text column: a model may answer with NUL or lone surrogates, here escaped.

        Not for `jsonb`, which refuses an escaped NUL.
        """
        answer = self.answer
        kept = {
            "text": answer.text, "finish_reason": answer.finish_reason, "usage": answer.usage.to_json(),
            "model": answer.model, "request_id": answer.request_id,
        }  # fmt: skip
        return json.dumps({"provider": self.provider, "answer": kept}, ensure_ascii=True, separators=(",", ":"))

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

    #: its name among the configured models; empty: the default one
    name: str = ""
    #: "openai", "litellm" or "local"
    provider: str = "openai"
    #: None means: nothing is configured, use the local model.
    model: str | None = None
    #: None means the provider's own endpoint.
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    style: AnswerStyle = AnswerStyle.STRICT_SCHEMA
    #: Total time for one call, from sending to the last byte of the answer.
    timeout: timedelta = timedelta(seconds=90)
    account: str = "default"
    #: name of its pool; empty: see `pool_name`
    pool: str = ""
    limits: PoolLimits = field(default_factory=PoolLimits)
    #: length of answers, in tokens, assumed for calls that give no `max_tokens`
    expected_tokens: int = 1_024
    #: name of the model that is asked what this one could not answer
    escalate_to: str | None = None
    #: in the place of the price list's
    price: Price | None = None
    #: names the server in the memo; empty: its address does
    memo_name: str = ""

    @property
    def memo_endpoint(self) -> str:
        """Which server the memo's keys name; empty: the provider's own endpoint.

        >>> LLMSettings(base_url="http://127.0.0.1:8000/v1").memo_endpoint, LLMSettings().memo_endpoint
        ('127.0.0.1:8000/v1', '')
        """
        if self.memo_name or self.base_url is None or self.provider == "local":
            return self.memo_name
        named = endpoint_of(self.base_url)
        return "" if self.provider == "openai" and named == endpoint_of(OPENAI_URL) else named

    @property
    def pool_name(self) -> str:
        """The name of its quota: provider, account unless that is the default one, and model.

        >>> LLMSettings(model="gpt-x").pool_name, LLMSettings(model="gpt-x", account="eu").pool_name
        ('openai:gpt-x', 'openai:eu:gpt-x')
        """
        account = () if self.account == "default" else (self.account,)
        return self.pool or ":".join((self.provider, *account, self.model or "local"))
