"""The tables of memory, beside those of the store in its database, and all that is done with them.

Each verb is one transaction. What works on a flush holds it under a fence, a number that each holder raises: a write
under an older one changes nothing.
"""

from __future__ import annotations

from typing import Any

from headrace import App
from headrace.apps.memory.tables.batches import BatchVerbs
from headrace.apps.memory.tables.buffers import BufferVerbs
from headrace.apps.memory.tables.holding import HoldingVerbs
from headrace.apps.memory.tables.intake import IntakeVerbs
from headrace.apps.memory.tables.profiles import ProfileVerbs
from headrace.apps.memory.tables.reading import ReadingVerbs
from headrace.apps.memory.tables.set_up import SetUpVerbs
from headrace.apps.memory.tables.statements import Statements
from headrace.apps.memory.tables.storing import StoringVerbs
from headrace.apps.memory.tables.users import UserVerbs
from headrace.apps.memory.tables.values import (
    Buffer,
    Committed,
    Conflict,
    Ended,
    FoundGist,
    NewBlob,
    NotYet,
    StaleSlot,
    User,
    WaitingFlush,
)

__all__ = [
    "Buffer",
    "Committed",
    "Conflict",
    "Ended",
    "FoundGist",
    "MemoryTables",
    "NewBlob",
    "NotYet",
    "StaleSlot",
    "User",
    "WaitingFlush",
]


class MemoryTables(
    SetUpVerbs,
    IntakeVerbs,
    UserVerbs,
    BufferVerbs,
    HoldingVerbs,
    StoringVerbs,
    BatchVerbs,
    ProfileVerbs,
    ReadingVerbs,
):
    """The tables in the schema `[memory] schema` of the store's database.

    Every verb raises StoreUnavailableError when the database cannot be reached, StoreVersionError when the tables are
    not there (see `set_up`), ConfigError where the store is no PostgreSQL.

    >>> async def main(app: App) -> None:  # doctest: +SKIP
    ...     tables = MemoryTables(app)
    ...     await tables.set_up()
    ...     await tables.insert_blobs([NewBlob("ada", "chat", {"messages": []}, 0, uuid4())])
    """

    def __init__(self, app: App, connection: Any = None) -> None:
        self._app = app
        self._statements = Statements(app, connection)

    def on(self, connection: Any) -> MemoryTables:
        """Return the tables inside the transaction that the caller has begun on a connection of `app.database()`.

        So that jobs and events become one with what the verbs write: `app.transaction(connection)`.
        """
        return MemoryTables(self._app, connection)
