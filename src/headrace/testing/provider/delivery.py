"""How a reply travels: paced by the latency model, whole or streamed, with the faults that lie in the transfer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

from headrace.testing.provider.account import Charge
from headrace.testing.provider.chat import ChatRequest, Reply, stream_bodies, whole_body
from headrace.testing.provider.faults import FaultKind
from headrace.testing.provider.latency import Latency
from headrace.testing.provider.wire import HttpConnection

_DRIP_INTERVAL_SECONDS = 1.0
_SEND_SIZE = 262_144
_HUGE_SIZE = 50_000_000
_CONTENT = b'"content": "'


class Delivery:
    """Sends one reply on one connection."""

    def __init__(
        self,
        connection: HttpConnection,
        request: ChatRequest,
        *,
        latency: Latency,
        headers: Mapping[str, str],
        charge: Charge,
    ) -> None:
        self._connection, self._request, self._latency = connection, request, latency
        self._headers, self._charge = headers, charge

    async def deliver(self, reply: Reply, identity: Mapping[str, Any], kind: FaultKind | None) -> bool:
        """Send the reply; whether all of it went out."""
        content_type = "text/event-stream" if self._request.stream else "application/json"
        headers = {"content-type": content_type, "x-request-id": f"req_{identity['id']}", **self._headers}
        parts = self._streamed(reply, identity) if self._request.stream else self._whole(reply, identity, kind)
        await self._connection.start(200, headers)
        if kind is FaultKind.CUT:
            await self._send_half(parts)
            self._connection.cut()
            return False
        async for part in parts:
            await self._send(part, kind)
        await self._connection.finish()
        return True

    async def _whole(self, reply: Reply, identity: Mapping[str, Any], kind: FaultKind | None) -> AsyncIterator[bytes]:
        seconds = self._latency.total(reply.output_tokens)
        self._charge.expect_end(seconds)
        await asyncio.sleep(seconds)
        self._charge.wrote(reply.output_tokens)
        self._charge.settle()
        body = whole_body(self._request, reply, identity, self._charge.cached_tokens)
        if kind is FaultKind.EMPTY:
            body["choices"] = []
        raw = json.dumps(body).encode()
        if kind is FaultKind.BROKEN_BODY:
            raw = raw[: len(raw) // 2]
        for start in range(0, len(raw), _SEND_SIZE):
            yield raw[start : start + _SEND_SIZE]

    async def _streamed(self, reply: Reply, identity: Mapping[str, Any]) -> AsyncIterator[bytes]:
        self._charge.expect_end(self._latency.total(reply.output_tokens))
        await asyncio.sleep(self._latency.first_token.total_seconds())
        bodies = stream_bodies(self._request, reply, identity, self._charge.cached_tokens)
        for number, body in enumerate(bodies):
            self._charge.wrote(min(number, reply.output_tokens))
            if number > reply.output_tokens:
                self._charge.settle()
            yield b"data: " + json.dumps(body).encode() + b"\n\n"
            await asyncio.sleep(self._latency.per_token())
        yield b"data: [DONE]\n\n"

    async def _send(self, part: bytes, kind: FaultKind | None) -> None:
        if kind is FaultKind.BAD_UTF8:
            part = part.replace(_CONTENT, _CONTENT + b"\xff\xfe", 1)
        if kind is FaultKind.HUGE and _CONTENT in part:
            before, _, part = part.partition(_CONTENT)
            await self._send_huge(before + _CONTENT)
        if kind is not FaultKind.DRIP:
            await self._connection.send(part)
            return
        for byte in part:
            await self._connection.send(bytes([byte]))
            await asyncio.sleep(_DRIP_INTERVAL_SECONDS)

    async def _send_huge(self, before: bytes) -> None:
        await self._connection.send(before)
        for _ in range(-(-_HUGE_SIZE // _SEND_SIZE)):
            await self._connection.send(b"A" * _SEND_SIZE)

    async def _send_half(self, parts: AsyncIterator[bytes]) -> None:
        collected = [part async for part in parts]
        data = b"".join(collected)
        await self._connection.send(data[: len(data) // 2])
