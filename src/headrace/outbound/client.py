"""The client: checks where a request leads, looks its name up once, and follows redirects, each checked again."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Sequence
from urllib.parse import urlencode

from headrace.model.durations import format_duration
from headrace.model.errors import InvalidInputError
from headrace.model.http import HttpAnswer, HttpError, HttpRequest
from headrace.model.targets import Target, TargetRules
from headrace.outbound.hop import REDIRECTS, Hop

#: Returns the addresses of a host.
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]


async def resolve_host(host: str, port: int) -> list[str]:
    """Return the addresses of a host as the machine knows them. Raises OSError."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(place[4][0]) for place in found))


class OutboundClient:
    """Sends requests to the public web and to what is allowed beyond it; it keeps nothing open between them."""

    def __init__(
        self,
        rules: TargetRules | None = None,
        *,
        resolve: Resolve = resolve_host,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._rules = rules or TargetRules()
        self._resolve = resolve
        self._tls = tls

    async def send(self, request: HttpRequest) -> HttpAnswer:
        """Return the answer, whatever its status; `request.timeout` bounds all of it, redirects and body included.

        Raises ForbiddenTargetError, HttpError, and InvalidInputError for a request that cannot be sent.
        """
        target = self._rules.parse(request.url).with_query(_encoded(request))
        hop = Hop.first(request, target)
        try:
            async with asyncio.timeout(request.timeout.total_seconds()):
                return await self._follow(hop, request)
        except TimeoutError:
            rule = f"gave no whole answer within {format_duration(request.timeout)}"
            raise HttpError(f"{target.site} {rule}", code="http_timeout", transient=True) from None

    async def _follow(self, hop: Hop, request: HttpRequest) -> HttpAnswer:
        for _ in range(request.max_redirects + 1):
            answer = await self._ask(hop, request)
            location = answer.headers.get("location")
            if answer.status not in REDIRECTS or location is None or request.max_redirects == 0:
                return answer
            field = f"the redirect of {hop.target.site}"
            hop = hop.redirected(answer.status, self._rules.parse(hop.target.join(location), field=field))
        many = f"{request.max_redirects} redirects and no answer, the last one to {hop.target.site}"
        raise HttpError(f"{many}: correct the URL, or allow more", code="http_redirects")

    async def _ask(self, hop: Hop, request: HttpRequest) -> HttpAnswer:
        # Imported where it is used: whoever sends no requests does not pay for it.
        from headrace.outbound.exchange import default_tls, exchange

        addresses = await self._addresses(hop.target)
        self._tls = self._tls or default_tls()
        return await exchange(hop, addresses, request.max_bytes, self._tls, cut=request.cut)

    async def _addresses(self, target: Target) -> list[str]:
        """Return the addresses of a target, all of them checked; no other one is connected to."""
        if target.address is not None:
            return self._rules.check(target, [target.host])
        try:
            found = await self._resolve(target.host, target.port)
        except OSError as error:
            soon = getattr(error, "errno", None) == socket.EAI_AGAIN
            why = f"the host {target.host} is not known"
            raise HttpError(why, code="http_unreachable", transient=soon) from None
        if not found:
            raise HttpError(f"the host {target.host} has no address", code="http_unreachable")
        return self._rules.check(target, found)


def _encoded(request: HttpRequest) -> str:
    """Return the query as it is sent. Raises InvalidInputError, never with a value: it may be a secret."""
    try:
        return urlencode(request.query)
    except UnicodeEncodeError:
        rule = "must have no halves of surrogate pairs, which are no characters"
        raise InvalidInputError("query", rule, "a text with one") from None
