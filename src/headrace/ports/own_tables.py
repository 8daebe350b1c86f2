"""The port of tables of the user's own, in the database that the store is in."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol


class OwnTables(Protocol):
    """Lends connections to whoever has tables beside those of the store."""

    def connection(self) -> AbstractAsyncContextManager[Any]:
        """Lend a connection of the driver; it comes back with the end of the block, rolled back if need be.

        Raises StoreUnavailableError when the database cannot be reached, before or within the block, or no connection
        is free; what else the database says passes through, as that a transaction met a deadlock.
        """
        ...
