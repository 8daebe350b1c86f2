"""One request of a chain of redirects: what is asked of which target, and what is asked of the next."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from headrace.model.errors import InvalidInputError
from headrace.model.http import HttpRequest
from headrace.model.targets import Target

METHODS = ("DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT")
#: Answers that lead elsewhere, by their `Location`.
REDIRECTS = frozenset({301, 302, 303, 307, 308})
#: They belong to the connection and to what can be read, so they are not taken from the request.
_OURS = frozenset(
    {"accept-encoding", "connection", "content-length", "expect", "host", "keep-alive", "proxy-authorization"}
    | {"proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"}
)
#: All that another origin is told: any other header may hold a secret.
_FOR_ANYBODY = frozenset({"accept", "accept-language", "content-language", "content-type", "user-agent"})
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_UNSAFE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f\ud800-\udfff]")

Headers = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Hop:
    """A request to one target."""

    method: str
    target: Target
    headers: Headers = field(default=(), repr=False)
    body: bytes | None = field(default=None, repr=False)

    @classmethod
    def first(cls, request: HttpRequest, target: Target) -> Hop:
        """Return the request as it is written. Raises InvalidInputError for what cannot be sent."""
        if request.method not in METHODS:
            raise InvalidInputError("method", f"must be one of {', '.join(METHODS)}", request.method)
        return cls(request.method, target, _checked(request.headers, target), request.body)

    def redirected(self, status: int, target: Target) -> Hop:
        """Return the request that follows an answer with this status.

        A method that changes to GET loses its body; another origin is told no header that could hold a secret.
        """
        to_get = (status == 303 and self.method != "HEAD") or (status in (301, 302) and self.method == "POST")
        headers = self.headers
        if to_get:
            headers = tuple(one for one in headers if not one[0].lower().startswith("content-"))
        if target.origin != self.target.origin:
            headers = tuple(one for one in headers if one[0].lower() in _FOR_ANYBODY)
        return Hop("GET" if to_get else self.method, target, headers, None if to_get else self.body)

    def sent_headers(self) -> list[tuple[str, str]]:
        """Return all headers, those of the connection among them."""
        own = [("Host", self.target.authority), ("Accept-Encoding", "gzip"), ("Connection", "close")]
        if self.body is not None or self.method in ("PATCH", "POST", "PUT"):
            own.append(("Content-Length", str(len(self.body or b""))))
        written = {name.lower() for name, _ in self.headers}
        usual = [("Accept", "*/*"), ("User-Agent", "headrace")]
        return own + [one for one in usual if one[0].lower() not in written] + list(self.headers)


def _checked(headers: Iterable[tuple[str, str]], target: Target) -> Headers:
    """Return the headers that are sent. Raises InvalidInputError, never with a value: it may be a secret."""
    sent = []
    for name, value in headers:
        if not _TOKEN.fullmatch(name):
            raise InvalidInputError("headers", "must have names of letters, digits and dashes", name)
        if _UNSAFE.search(value):
            raise InvalidInputError(
                f"headers.{name}", "must have no line breaks or control characters", "one with some"
            )
        if name.lower() == "host" and value.lower() != target.authority:
            raise InvalidInputError("headers.Host", f"must be left out, or be {target.authority} as in the URL", value)
        if name.lower() not in _OURS:
            sent.append((name, value.strip()))
    return tuple(sent)
