"""Details over HTTP: requests that are sent again where that is safe, and a stream that goes on where it was cut.

A batch is followed by server-sent events. Each has the number of its entry; after a cut the service is asked for those
behind the last one, so that each entry is seen once and in order, whatever happens to connections and services.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any
from urllib.parse import quote, urlsplit

import httpx2

from headrace import HeadraceError
from headrace.apps.details.commands.desks import Told
from headrace.apps.details.commands.refusals import PASSING, ServiceError, ServiceUnreachableError, check, document_of
from headrace.apps.details.names import ENDED

PREFIX = "/api/v1/details"
CONNECT_SECONDS, ANSWER_SECONDS = 5.0, 60.0
#: A service that says nothing so long, not even that it is there, is asked again: it writes a comment every 15 s.
SILENCE_SECONDS = 45.0
#: Waits before a request is sent again, and before a stream is asked for again after it brought something.
AGAIN_SECONDS, ONCE_MORE_SECONDS = (0.2, 0.6, 1.2), 0.1
#: A stream that cannot be had again so long is given up.
PATIENCE_SECONDS = 60.0
_OWN_NAMES = ("localhost", "127.0.0.1", "::1")


def new_client(url: str, token: str | None) -> httpx2.AsyncClient:
    """Return a client of a service; this machine is never asked through a proxy."""
    timeout = httpx2.Timeout(ANSWER_SECONDS, connect=CONNECT_SECONDS)
    headers = {} if token is None else {"authorization": f"Bearer {token}"}
    is_here = urlsplit(url).hostname in _OWN_NAMES
    return httpx2.AsyncClient(
        base_url=url, headers=headers, timeout=timeout, trust_env=not is_here, follow_redirects=False
    )  # fmt: skip


class RemoteDesk:
    """`desks.Desk` of a service."""

    def __init__(self, client: httpx2.AsyncClient, *, patience: float = PATIENCE_SECONDS) -> None:
        self._client, self._patience = client, patience

    async def submit(self, request: Mapping[str, Any], key: str) -> Mapping[str, Any]:
        """Send a request; its key makes it safe to send it again."""
        if "authorization" in self._client.headers:
            # Who may not read could not follow the batch: that is told before it is made.
            await self.mode()
        return await self._ask("POST", PREFIX, body=request, headers={"idempotency-key": key})

    async def until_told(self, batch_id: str) -> None:
        """Nothing to wait for: workers of the service tell it."""

    async def view(self, batch_id: str) -> Mapping[str, Any]:
        """Ask for a batch."""
        return await self._ask("GET", _path(batch_id))

    async def cancel(self, batch_id: str) -> Mapping[str, Any]:
        """Have a batch cancelled."""
        return await self._ask("POST", f"{_path(batch_id)}/cancel")

    async def latest(self, limit: int) -> list[Mapping[str, Any]]:
        """Ask for a page of batches."""
        found = (await self._ask("GET", f"{PREFIX}?limit={limit}")).get("batches")
        return list(found) if isinstance(found, list) else []

    async def mode(self) -> Mapping[str, Any]:
        """Ask for the mode."""
        return await self._ask("GET", f"{PREFIX}/mode")

    async def set_mode(self, mode: str, progress: Callable[[str], None]) -> Mapping[str, Any]:
        """Ask for another mode, again and again until everything that was begun has ended."""
        while True:
            answer = await self._ask("PUT", f"{PREFIX}/mode", body={"mode": mode})
            if not answer.get("switching_to"):
                return answer
            progress(str(answer.get("detail", "batches that were begun are waited for")))

    async def follow(self, batch_id: str) -> AsyncGenerator[Told, None]:
        """Yield entries from streams that follow one another."""
        place = _Place(self._patience)
        while True:
            try:
                async for told in self._stream(batch_id, place):
                    yield told
                    if told.type == ENDED:
                        return
            except httpx2.TransportError as error:
                place.fail(_why(error))
            except ServiceUnreachableError as error:
                place.fail(str(error))
            await asyncio.sleep(place.pause())

    async def _stream(self, batch_id: str, place: _Place) -> AsyncGenerator[Told, None]:
        """Yield the entries of one connection."""
        headers = {"accept": "text/event-stream", **({"last-event-id": str(place.last)} if place.last else {})}
        timeout = httpx2.Timeout(SILENCE_SECONDS, connect=CONNECT_SECONDS)
        request = self._client.stream("GET", f"{_path(batch_id)}/events", headers=headers, timeout=timeout)
        async with request as response:
            await check(response)
            if not response.headers.get("content-type", "").startswith("text/event-stream"):
                raise ServiceError(
                    f"{self._client.base_url} sends no events as a service of Headrace does: check --url"
                )
            place.connected()
            async for event in httpx2.EventSource(response):
                if event.retry is not None:
                    place.retry = event.retry / 1_000
                told = _told(event)
                if told is not None and place.take(told.seq):
                    yield told

    async def _ask(
        self, method: str, path: str, *, body: Mapping[str, Any] | None = None, headers: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """Return the document of an answer. Every request here may be sent again."""
        for wait in (*AGAIN_SECONDS, None):
            try:
                response = await self._client.request(method, path, json=body, headers=headers)
                if response.status_code not in PASSING or wait is None:
                    break
                wait = _retry_after(response, wait)
            except httpx2.TransportError as error:
                if wait is None:
                    raise self._unreachable(error) from None
            await asyncio.sleep(wait)
        await check(response)
        document = document_of(response.content)
        if not document:
            raise ServiceError(f"{self._client.base_url} did not answer as a service of Headrace does: check --url")
        return document

    def _unreachable(self, error: httpx2.TransportError) -> HeadraceError:
        fix = "check that `headrace serve` runs, and the address in --url"
        return ServiceUnreachableError(
            f"the service at {self._client.base_url} cannot be reached ({_why(error)}): {fix}"
        )


class _Place:
    """How far a feed was read, and how patiently it is asked for again."""

    def __init__(self, patience: float) -> None:
        self.last, self.retry = 0, 0.5
        self._grew, self._failing_since = False, time.monotonic()
        # Who was never there is not waited for as long as who went away.
        self._patience, self._once_connected = min(patience, sum(AGAIN_SECONDS)), patience

    def connected(self) -> None:
        """Note that the service answered."""
        self._patience, self._failing_since = self._once_connected, 0.0

    def take(self, seq: int) -> bool:
        """Whether an entry is new; it is the last one from now on."""
        if seq <= self.last:
            return False
        self.last, self._grew = seq, True
        return True

    def fail(self, why: str) -> None:
        """Note that there is no stream. Raises ServiceUnreachableError when that lasts too long."""
        self._failing_since = self._failing_since or time.monotonic()
        if time.monotonic() - self._failing_since > self._patience:
            rule = f"could not be followed for {self._patience:g} s; the batch goes on without being watched"
            raise ServiceUnreachableError(f"the service {rule}: {why}")

    def pause(self) -> float:
        """Return how long to wait before the next stream: shortly after one that brought something."""
        pause = ONCE_MORE_SECONDS if self._grew else self.retry
        self._grew = False
        return pause


def _path(batch_id: str) -> str:
    return f"{PREFIX}/{quote(batch_id, safe='')}"


def _told(event: httpx2.ServerSentEvent) -> Told | None:
    """Return the entry of an event; None for one that is none, such as a mere `retry`."""
    if not event.data:
        return None
    data = document_of(event.data.encode())
    if not (event.id.isascii() and event.id.isdigit()):
        raise ServiceError(f"the service sent an event without a number: {json.dumps(event.id)[:80]}")
    return Told(int(event.id), event.event, data)


def _retry_after(response: httpx2.Response, usual: float) -> float:
    asked = response.headers.get("retry-after", "")
    return min(float(asked), 10.0) if asked.isascii() and asked.isdigit() else usual


def _why(error: httpx2.TransportError) -> str:
    return str(error) or type(error).__name__
