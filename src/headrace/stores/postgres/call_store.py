"""The ledger of model calls in PostgreSQL."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar
from uuid import UUID

from headrace.model.calls import NewCall, Opening, Settlement, SpooledPart, Verdict
from headrace.model.llm import StoredAnswer
from headrace.stores.postgres.database import Database, Row

T = TypeVar("T")

#: Calls of one statement: each takes an entry in the server's table of locks, which has 6,400 for all connections.
_SLICE = 100
#: Between the names of scopes in one text; arrays of arrays have to be of one length.
_SEPARATOR = "\x1f"


class PostgresCallStore:
    """`ports.call_store.CallStore`; `hot` has connections with pinned plans.

    Each verb is one statement and one commit for up to a hundred calls. Locks: keys, pools and budgets by their
    numbers, then calls by id, then answers by key, then sums by scope, day and error.
    """

    def __init__(self, hot: Database) -> None:
        self._hot = hot

    async def open_calls(self, session: UUID, calls: Sequence[NewCall]) -> list[Opening]:
        """Open calls against memo, one another, pools and budgets."""
        openings: list[Opening] = []
        for part in _slices(calls):
            rows = await self._hot.fetch("open_calls", session=session, **_columns(part), **_conditions(part))
            openings += [_opening(row) for row in _in_order(rows)]
        return openings

    async def send_calls(self, calls: Sequence[UUID]) -> frozenset[UUID]:
        """Record prepared calls as sent."""
        rows = await self._hot.fetch("send_calls", ids=list(calls)) if calls else []
        return frozenset(row["id"] for row in rows)

    async def spool_items(self, parts: Sequence[SpooledPart]) -> None:
        """Store parts of answers."""
        for some in _slices(parts):
            await self._hot.fetch(
                "spool_items",
                calls=[part.call for part in some],
                numbers=[part.number for part in some],
                items=[json.dumps(part.text) for part in some],
            )

    async def settle_calls(self, settlements: Sequence[Settlement]) -> list[StoredAnswer | None]:
        """Record how calls ended, with their answers and costs."""
        answers: list[StoredAnswer | None] = []
        for part in _slices(settlements):
            calls = [settlement.call for settlement in part]
            rows = await self._hot.fetch("settle_calls", **_columns(calls), **_endings(part))
            pairs = zip(part, _in_order(rows), strict=True)
            answers += [settlement.answer if row["stands"] else _decoded(row["reply"]) for settlement, row in pairs]
        return answers

    async def reap_calls(self, *, limit: int) -> int:
        """End live calls of sessions that are not alive."""
        row = await self._hot.fetch_one("reap_calls", limit=limit)
        assert row is not None
        return int(row["ended"])


def _slices(items: Sequence[T]) -> Iterator[Sequence[T]]:
    return (items[start : start + _SLICE] for start in range(0, len(items), _SLICE))


def _in_order(rows: Sequence[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: row["number"])


def _columns(calls: Sequence[NewCall]) -> dict[str, list[Any]]:
    """Return what is recorded of calls when they are opened, each column as an array."""
    return {
        "ids": [call.id for call in calls],
        "keys": [call.key for call in calls],
        "pools": [call.pool for call in calls],
        "providers": [call.provider for call in calls],
        "models": [call.model for call in calls],
        "purposes": [call.purpose for call in calls],
        "jobs": [call.origin.job_id for call in calls],
        "batches": [call.origin.batch_id for call in calls],
        "runs": [call.origin.run_id for call in calls],
        "tenants": [call.origin.tenant for call in calls],
        "scope_lists": [_SEPARATOR.join(call.scopes) for call in calls],
        "prompts": [call.estimate.input_tokens for call in calls],
        "mosts": [call.estimate.max_tokens for call in calls],
        "most_nanos": [call.estimate.cost_nano for call in calls],
    }


def _conditions(calls: Sequence[NewCall]) -> dict[str, list[Any]]:
    return {
        "sends": [call.send for call in calls],
        "freshes": [call.fresh for call in calls],
        "flight_limits": [call.most_in_flight for call in calls],
        "day_limits": [call.most_per_day for call in calls],
    }


def _endings(settlements: Sequence[Settlement]) -> dict[str, list[Any]]:
    return {
        "states": [settlement.state for settlement in settlements],
        "replies": [None if settlement.answer is None else settlement.answer.encode() for settlement in settlements],
        "replaces": [settlement.replace for settlement in settlements],
        "inputs": [settlement.usage.input_tokens for settlement in settlements],
        "outputs": [settlement.usage.output_tokens for settlement in settlements],
        "cacheds": [settlement.usage.cached_tokens for settlement in settlements],
        "answereds": [settlement.usage.calls for settlement in settlements],
        "costs": [settlement.usage.cost_nano for settlement in settlements],
        "unpriceds": [settlement.usage.unpriced for settlement in settlements],
        "tables": [settlement.priced_by for settlement in settlements],
        "errors": [settlement.error for settlement in settlements],
        "request_ids": [settlement.request_id for settlement in settlements],
    }


def _opening(row: Row) -> Opening:
    spooled = tuple(json.loads(item) for item in row["spooled"] or ())
    return Opening(Verdict(row["verdict"]), _decoded(row["reply"]), spooled, row["refuser"])


def _decoded(text: str | None) -> StoredAnswer | None:
    return None if text is None else StoredAnswer.decode(text)
