"""The ledger of model calls on Redis."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar
from uuid import UUID

from headrace.model.calls import NewCall, Opening, Settlement, SpooledPart, Verdict
from headrace.model.llm import StoredAnswer
from headrace.stores.redis.ledger_rows import encode_call, encode_settlement
from headrace.stores.redis.namespace import Namespace
from headrace.stores.redis.rows import parse_id

T = TypeVar("T")

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

    async def spool_items(self, parts: Sequence[SpooledPart]) -> None:
        """Store parts of answers."""
        for some in _spool_parts(parts):
            words = [word for part, text in some for word in (part.call.hex, part.number, text)]
            await self._namespace.run("spool_items", *words)

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


def _spool_parts(parts: Sequence[SpooledPart]) -> Iterator[list[tuple[SpooledPart, str]]]:
    """Yield parts of answers with their texts, as many as one script takes."""
    # As JSON, in ASCII: a model may answer with characters that have no UTF-8.
    return _in_parts(((part, json.dumps(part.text)) for part in parts), _MANY)


def _settlement_parts(settlements: Sequence[Settlement]) -> Iterator[list[tuple[Settlement, str]]]:
    """Yield settlements with their answers as texts, empty where there is none, as many as one script takes."""
    texts = ("" if each.answer is None else each.answer.encode() for each in settlements)
    return _in_parts(zip(settlements, texts, strict=True), _SLICE)


def _in_parts(pairs: Iterable[tuple[T, str]], most: int) -> Iterator[list[tuple[T, str]]]:
    """Yield pairs of something and its text, `most` and `_BYTES` at a time; a longer text comes alone."""
    part: list[tuple[T, str]] = []
    size = 0
    for pair in pairs:
        if part and (len(part) == most or size + len(pair[1]) > _BYTES):
            yield part
            part, size = [], 0
        part.append(pair)
        size += len(pair[1])
    if part:
        yield part
