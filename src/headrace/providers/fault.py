"""What an HTTP provider says when it does not answer, as it comes; it never leaves the adapters."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

#: Of a message: enough to sort by and to quote from; the page of a proxy is longer.
_LONGEST_MESSAGE = 2_000


@dataclass(slots=True)
class Progress:
    """How far a call came."""

    #: a byte of the request may have reached the provider: from here on it may be paid
    is_sent: bool = False


@dataclass(frozen=True, slots=True)
class Fault:
    """A status that is no answer, or an error in the place of one."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    #: Codes, types and reasons, as the provider names them; the one that says most comes first.
    words: tuple[str, ...] = ()
    #: The parameter that was wrong.
    param: str = ""
    message: str = ""
    #: Entries of Google's `details`.
    details: tuple[Mapping[str, Any], ...] = ()
    #: Whether it came in an answer that had begun (status 200): the model may have worked.
    within_answer: bool = False
    #: Whether it may be paid, where more is known of it than its status; None: it is not.
    maybe_paid: bool | None = None

    @property
    def is_redirect(self) -> bool:
        """Whether it names another place to ask."""
        return 300 <= self.status < 400

    @classmethod
    def read(cls, status: int, headers: Mapping[str, str], raw: bytes) -> Fault:
        """The fault in this response, as far as its body can be read.

        >>> Fault.read(429, {}, b'{"error": {"code": "insufficient_quota", "message": "No credit"}}').words
        ('insufficient_quota',)
        """
        try:
            body = json.loads(raw)
        except (ValueError, RecursionError):
            return cls(status, headers, message=raw[:_LONGEST_MESSAGE].decode("utf-8", "replace"))
        return cls.of(body, status=status, headers=headers)

    @classmethod
    def of(cls, body: Any, *, status: int, headers: Mapping[str, str], within_answer: bool = False) -> Fault:
        """The fault in this body, which is JSON of any shape."""
        if isinstance(body, list) and body:  # Gemini wraps it so
            body = body[0]
        outer = body if isinstance(body, Mapping) else {}
        error = outer.get("error", outer)
        if isinstance(error, str):  # Ollama and others
            error = {"message": error}
        error = error if isinstance(error, Mapping) else {}
        details = error.get("details")
        details = tuple(entry for entry in details if isinstance(entry, Mapping)) if isinstance(details, list) else ()
        reasons = [entry.get("reason") for entry in details]
        words = [error.get("code"), *reasons, error.get("type"), error.get("status")]
        return cls(
            status=status,
            headers=headers,
            words=tuple(str(word) for word in words if isinstance(word, str | int) and word),
            param=str(error.get("param") or ""),
            message=str(error.get("message") or error.get("detail") or outer.get("detail") or "")[:_LONGEST_MESSAGE],
            details=details,
            within_answer=within_answer,
        )


class FaultError(Exception):
    """The provider answered with an error."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.status)
        self.fault = fault


class UnreachableError(Exception):
    """The provider cannot be reached, or the connection broke."""
