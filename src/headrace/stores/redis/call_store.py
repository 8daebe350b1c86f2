"""The ledger of model calls on Redis."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from uuid import UUID

from headrace.model.calls import NewCall, Opening, Settlement, Verdict
from headrace.model.llm import StoredAnswer
from headrace.stores.redis.ledger_rows import encode_call, encode_settlement
from headrace.stores.redis.namespace import Namespace
from headrace.stores.redis.rows import parse_id

#: Calls of one script, and bytes of texts, so that it is short.
_SLICE, _BYTES = 100, 4 * 1024 * 1024
#: Ids, and parts of streamed answers, of one script.
_MANY = 1_000


class RedisCallStore:
    """`ports.call_store.CallStore`: a script for up to a hundred calls, so rivals are served one after another."""

    def __init__(self, namespace: Namespace) -> None:
        self._namespace = namespace

    async def open_calls(self, session: UUID, calls: Sequence[NewCall]) -> list[Opening]:
        """Open calls against memo, one another, pools and budgets."""
        openings: list[Opening] = []
        while len(openings) < len(calls):
            part = calls[len(openings) : len(openings) + _SLICE]
            rows = await self._namespace.run("open_calls", session.hex, _BYTES, *map(encode_call, part))
            openings += [_opening(*row) for row in rows]
        return openings

    async def send_calls(self, calls: Sequence[UUID]) -> frozenset[UUID]:
        """Record prepared calls as sent."""
        sent: list[str] = []
        for start in range(0, len(calls), _MANY):
            sent += await self._namespace.run("send_calls", *(each.hex for each in calls[start : start + _MANY]))
        return frozenset(map(parse_id, sent))

    async def spool_items(self, call: UUID, start: int, items: Sequence[str]) -> None:
        """Store parts of an answer."""
        # As JSON, in ASCII: a model may answer with characters that have no UTF-8.
        for words in _parts([json.dumps(item) for item in items]) or [[]]:
            await self._namespace.run("spool_items", call.hex, start, *words)
            start += len(words)

    async def settle_calls(self, settlements: Sequence[Settlement]) -> list[StoredAnswer | None]:
        """Record how calls ended, with their answers and costs."""
        standing: dict[str, StoredAnswer | None] = {}
        for part in _settlement_parts(settlements):
            words = [word for settlement, text in part for word in (encode_settlement(settlement), text)]
            for (settlement, _), told in zip(part, await self._namespace.run("settle_calls", *words), strict=True):
                # Of several parts the last one says what stands in the end.
                standing[settlement.call.key] = settlement.answer if told == 1 else _decoded(told)
        return [standing[settlement.call.key] for settlement in settlements]

    async def reap_calls(self, *, limit: int) -> int:
        """End live calls of sessions that are not alive."""
        ended = 0
        while ended < limit:
            part = min(_SLICE, limit - ended)
            count = await self._namespace.run("reap_calls", part)
            ended += count
            if count < part:
                break
        return ended


def _opening(verdict: str, detail: str | list[str] | None = None) -> Opening:
    match Verdict(verdict):
        case Verdict.ANSWERED:
            return Opening(Verdict.ANSWERED, StoredAnswer.decode(str(detail)))
        case Verdict.OPENED:
            return Opening(Verdict.OPENED, spooled=tuple(json.loads(item) for item in detail or ()))
        case Verdict.OVER_BUDGET:
            return Opening(Verdict.OVER_BUDGET, scope=str(detail))
        case other:
            return Opening(other)


def _decoded(told: str | int) -> StoredAnswer | None:
    return StoredAnswer.decode(told) if isinstance(told, str) else None


def _parts(items: Sequence[str]) -> list[list[str]]:
    """Return texts in parts that one script takes."""
    parts: list[list[str]] = []
    room = 0
    for item in items:
        if not parts or len(parts[-1]) == _MANY or room < len(item):
            parts.append([])
            room = _BYTES
        parts[-1].append(item)
        room -= len(item)
    return parts


def _settlement_parts(settlements: Sequence[Settlement]) -> Iterator[list[tuple[Settlement, str]]]:
    """Yield settlements with their answers as texts, empty where there is none, in parts that one script takes."""
    part: list[tuple[Settlement, str]] = []
    size = 0
    for settlement in settlements:
        text = "" if settlement.answer is None else settlement.answer.encode()
        if part and (len(part) == _SLICE or size + len(text) > _BYTES):
            yield part
            part, size = [], 0
        part.append((settlement, text))
        size += len(text)
    if part:
        yield part
