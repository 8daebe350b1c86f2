"""The PostgreSQL store, 15 and later, on asyncpg. Nothing is imported before `open_postgres_stores` is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headrace.stores.postgres.stores import open_postgres_stores

__all__ = ["open_postgres_stores"]


def __getattr__(name: str) -> Any:
    # The supervisor of the embedded server lives below this package and needs no driver.
    if name == "open_postgres_stores":
        from headrace.stores.postgres.stores import open_postgres_stores

        return open_postgres_stores
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
