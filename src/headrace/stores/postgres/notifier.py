"""Hints by NOTIFY and LISTEN (see `headrace.hinting`). One may ride on the statement that inserts a lone job.

Behind a pooler LISTEN needs `listen_dsn`, a way past the pooler; without one this process polls only.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Any

from headrace.hinting import CHECK_EVERY, CHECK_TIMEOUT, ServerNotifier
from headrace.stores.postgres.connection import Connection
from headrace.stores.postgres.database import Database
from headrace.stores.postgres.faults import sorted_faults


class PostgresNotifier(ServerNotifier):
    """The notifier port on PostgreSQL."""

    def __init__(self, database: Database, *, listen: bool, listen_dsn: str | None = None) -> None:
        pooled = database.options.pooled
        # Behind a pooler each statement runs in a transaction that we open, and a hint in it would wait for its end.
        super().__init__(
            f"headrace_{database.schema}",
            tells=listen,
            listens=listen and (listen_dsn is not None or not pooled),
            rides=not pooled,
        )
        self._database, self._listen_dsn = database, listen_dsn

    async def _publish(self, payloads: Sequence[str]) -> None:
        await self._database.fetch("notify", channel=self._channel, payloads=payloads)

    async def _listen(self) -> None:
        with sorted_faults():
            connection = await self._database.connect(dsn=self._listen_dsn)
            try:
                await self._listen_on(connection)
            finally:
                connection.terminate()

    async def _listen_on(self, connection: Connection) -> None:
        ended = asyncio.Event()
        connection.add_termination_listener(lambda _: ended.set())
        await connection.add_listener(self._channel, self._on_notify)
        self._connected()
        while not connection.is_closed():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(CHECK_EVERY):
                    await ended.wait()
            if not ended.is_set():  # a link that was cut silently looks merely quiet
                async with asyncio.timeout(CHECK_TIMEOUT):
                    await self._database.check(connection)

    def _on_notify(self, _connection: Any, _pid: int, _channel: str, payload: object) -> None:
        self._heard(str(payload))
