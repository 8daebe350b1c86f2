"""Figures of the requests that this process answered, by the template of their route: few, whatever is asked for."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headrace.service.problems import METHODS

REQUESTS, SECONDS = "headrace_http_requests_total", "headrace_http_request_seconds"
#: In place of paths that there are not, and of requests that were refused before their route was looked for.
NO_ROUTE = "none"


class HttpFigures:
    """Counts answers, and how long they took until their last byte."""

    def __init__(self) -> None:
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._seconds: Counter[str] = Counter()

    def add(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count an answer."""
        self._requests[route, method, status] += 1
        self._seconds[route] += seconds  # type: ignore[assignment]

    def expose(self) -> str:
        """Return the figures in the text format of Prometheus.

        >>> figures = HttpFigures()
        >>> figures.add("/api/v1/jobs", "POST", 201, 0.5)
        >>> print(figures.expose().splitlines()[2])
        headrace_http_requests_total{route="/api/v1/jobs",method="POST",status="201"} 1
        """
        return "\n".join(self._lines()) + "\n"

    def _lines(self) -> Iterator[str]:
        yield f"# HELP {REQUESTS} Requests that this process answered."
        yield f"# TYPE {REQUESTS} counter"
        counts: Counter[str] = Counter()
        for (route, method, status), count in sorted(self._requests.items()):
            counts[route] += count
            yield f'{REQUESTS}{{route="{route}",method="{method}",status="{status}"}} {count}'
        yield f"# HELP {SECONDS} How long they took, until the last byte."
        yield f"# TYPE {SECONDS} summary"
        for route, count in sorted(counts.items()):
            yield f'{SECONDS}_sum{{route="{route}"}} {self._seconds[route]:.6f}'
            yield f'{SECONDS}_count{{route="{route}"}} {count}'


class Counted:
    """Middleware that counts every answer. `prefix`: of routes below it the framework tells what is behind it."""

    def __init__(self, inner: ASGIApp, figures: HttpFigures, prefix: str) -> None:
        self._inner, self._figures, self._prefix = inner, figures, prefix

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and count its answer once it has ended."""
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        status, began = 500, time.perf_counter()

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._inner(scope, receive, sending)
        finally:
            method = scope["method"] if scope["method"] in METHODS else "other"
            self._figures.add(_template(scope, self._prefix), method, status, time.perf_counter() - began)


def _template(scope: Scope, prefix: str) -> str:
    route = scope.get("route")
    if route is None:
        return NO_ROUTE
    template = str(route.path)
    is_below = scope["path"].startswith(f"{prefix}/") and not template.startswith(f"{prefix}/")
    return prefix + template if is_below else template
