"""How a reply travels: paced by the latency model, whole or streamed, with the faults that lie in the transfer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from headrace.testing.provider.account import Charge
from headrace.testing.provider.chat import ChatRequest, Reply, StreamFrames, count_tokens, whole_body
from headrace.testing.provider.faults import FaultKind, Strike
from headrace.testing.provider.latency import Latency
from headrace.testing.provider.pacing import Pace
from headrace.testing.provider.spoiling import cut_at
from headrace.testing.provider.wire import HttpConnection

_DRIP_INTERVAL_SECONDS = 1.0
_SEND_SIZE = 262_144
_HUGE_SIZE = 50_000_000
_CONTENT = b'"content": "'
#: Tokens of a stream that go out in one piece at most.
_MOST_TOKENS = 512
_CUTS = (FaultKind.CUT, FaultKind.STREAM_CUT)
#: Faults of whole answers that need the body to go in parts.
_IN_PARTS = (*_CUTS, FaultKind.BAD_UTF8, FaultKind.HUGE, FaultKind.DRIP)


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

    async def deliver(self, reply: Reply, identity: Mapping[str, Any], strike: Strike | None) -> bool:
        """Send the reply; whether all of it went out."""
        self._pace = Pace(self._latency)
        self._charge.expect_end(self._latency.total(reply.output_tokens))
        self._headers = {**self._headers, "x-request-id": f"req_{identity['id']}"}
        if self._request.stream:
            frames = StreamFrames(self._request, reply, identity, self._charge.cached_tokens)
            return await self._stream(reply, frames, strike)
        return await self._whole(reply, identity, strike.kind if strike else None)

    async def _whole(self, reply: Reply, identity: Mapping[str, Any], kind: FaultKind | None) -> bool:
        await self._pace.end(reply.output_tokens)
        self._charge.wrote(reply.output_tokens)
        self._charge.settle()
        body = whole_body(self._request, reply, identity, self._charge.cached_tokens)
        if kind is FaultKind.EMPTY:
            body["choices"] = []
        raw = json.dumps(body).encode()
        if kind is FaultKind.BROKEN_BODY:
            raw = raw[: len(raw) // 2]
        headers = {"content-type": "application/json", **self._headers}
        if kind not in _IN_PARTS:
            await self._connection.respond(200, headers, raw)
            return True
        await self._connection.start(200, headers)
        if kind in _CUTS:
            await self._connection.send(raw[: len(raw) // 2])
            await self._connection.cut()
            return False
        await self._send(raw, kind)
        await self._connection.finish()
        return True

    async def _stream(self, reply: Reply, frames: StreamFrames, strike: Strike | None) -> bool:
        kind, end_at = strike.kind if strike else None, None
        tokens, sent = reply.output_tokens, 0
        if strike is not None and kind in _CUTS:
            end_at = cut_at(reply.text or "", strike)
            tokens = count_tokens((reply.text or "")[:end_at])
        await self._pace.first_token()
        await self._connection.start(200, {"content-type": "text/event-stream", **self._headers})
        await self._send(frames.opening(), kind)
        while sent < tokens:
            due = min(await self._pace.more(sent, tokens), sent + _MOST_TOKENS)
            self._charge.wrote(due)
            await self._send(frames.tokens(sent, due, end_at, self._latency.tokens_per_event), kind)
            sent = due
        if end_at is not None:
            await self._connection.cut()
            return False
        await self._pace.end(tokens)
        self._charge.settle()
        await self._send(frames.closing(), kind)
        await self._connection.finish()
        return True

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
