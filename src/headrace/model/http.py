"""A request to an address that a user wrote, its answer, and the error of one that has none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from headrace.model.errors import HeadraceError


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request to an address that a user wrote; what may hold a secret is not shown."""

    method: str
    url: str = field(repr=False)
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    query: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    body: bytes | None = field(default=None, repr=False)
    timeout: timedelta = timedelta(seconds=300)
    #: Redirects that are followed at most; each target is checked like the first.
    max_redirects: int = 21
    max_bytes: int = 64 * 1024 * 1024
    #: A longer body is cut there rather than refused.
    cut: bool = False


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """What came of it. Names of headers are in lower case."""

    status: int
    reason: str
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)
    #: With the query, where secrets may stand.
    url: str = field(repr=False)


class HttpError(HeadraceError):
    """No whole answer came. Try again later if it is transient; else correct what the message names."""

    code = "http"

    def __init__(self, message: str | None = None, *, code: str = "http", transient: bool = False) -> None:
        super().__init__(message)
        #: "http_timeout", "http_unreachable", "http_tls", "http_broken", "http_too_large" or "http_redirects"
        self.code = code
        self.transient = transient
