"""Writers of a campaign's events, and what they know of what was committed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any
from uuid import UUID

import asyncpg

from headrace import App, HeadraceError
from headrace.model.event import Outgoing
from tests.faults.event_app import ASKED
from tests.faults.event_line import Line


class Load:
    """Writers of events, each in the order of its key; and what they committed."""

    def __init__(self, line: Line, app: App) -> None:
        """Nothing is written yet."""
        self._line, self._app = line, app
        #: Set when nothing more is to be written.
        self.ended = asyncio.Event()
        #: Set while more may be written: who is faster than the line would only make it longer.
        self.room = asyncio.Event()
        self.room.set()
        #: Id by key and number, of events that were committed.
        self.committed: dict[tuple[str, int], str] = {}
        self.rolled_back: list[str] = []
        self.late: list[str] = []

    def _make(self, key: str, seq: int) -> Outgoing:
        return self._app.emission.make(ASKED, {"seq": seq}, {"aggregate_id": key, "correlation_id": f"{key}-{seq}"})

    async def write(self, key: str, pause: float) -> None:
        """Emit events of a key, one after another, until the end; an answer that is lost is asked for again."""
        for seq in count():
            await self.room.wait()
            if self.ended.is_set():
                return
            made = self._make(key, seq)
            await self._until_done(lambda made=made: self._app.event_stores.outbox.insert_events([made]))
            self.committed[key, seq] = str(made.id if made.event is None else made.event.id)
            await asyncio.sleep(pause)

    async def write_late(self, key: str, seconds: float, *, commit: bool) -> None:
        """Emit in a transaction that stays open while others are published, then commit or roll back."""
        made = self._make(key, 0)
        assert made.event is not None
        try:
            connection = await asyncpg.connect(self._line.postgres.dsn)
            transaction = connection.transaction()
            await transaction.start()
            await self._app.emit_on(connection, [made])
            await asyncio.sleep(seconds)
            await (transaction.commit() if commit else transaction.rollback())
            await connection.close()
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, HeadraceError):
            # The server died meanwhile: what became of it is looked up.
            commit = await self._is_there(made.event.id)
        if commit:
            self.committed[key, 0] = made.event.id
            self.late.append(made.event.id)
        else:
            self.rolled_back.append(made.event.id)

    async def _is_there(self, event_id: str) -> bool:
        async def look() -> bool:
            connection = await asyncpg.connect(self._line.postgres.dsn)
            try:
                return bool(await connection.fetchval("SELECT 1 FROM headrace.events WHERE id = $1", UUID(event_id)))
            finally:
                await connection.close()

        return await self._until_done(look)

    async def _until_done(self, work: Callable[[], Awaitable[Any]]) -> Any:
        while True:
            try:
                return await work()
            except (HeadraceError, OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
                await asyncio.sleep(0.1)
