"""Transactions on connections of the caller, of whichever driver."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Any

from headrace.model.errors import InvalidInputError


def begin_on(connection: Any) -> AbstractAsyncContextManager[Any]:
    """Return a transaction of the caller's connection, not begun yet."""
    begin = getattr(connection, "transaction", None) or getattr(connection, "begin", None)
    block = begin() if callable(begin) else None
    if not isinstance(block, AbstractAsyncContextManager):
        rule = "must be an async connection of asyncpg or psycopg 3, or an async connection or session of SQLAlchemy"
        raise InvalidInputError("connection", rule, f"{type(connection).__module__}.{type(connection).__name__}")
    return block
