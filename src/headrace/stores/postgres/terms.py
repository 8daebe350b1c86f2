"""Writes of the leader: none of them happens once its term is over."""

from __future__ import annotations

from typing import Any

from headrace.model.session import LeaderTerm
from headrace.stores.postgres.database import Database, Row, Transaction


async def fetch_under(database: Database, term: LeaderTerm | None, name: str, /, **values: Any) -> list[Row]:
    """Run a statement under a term, which it changes nothing without; None is an operator, who needs no term."""
    if term is None:
        return await database.fetch(name, **values)

    async def work(tx: Transaction) -> list[Row]:
        held = await tx.fetch("hold_term", session=term.session, term=term.term)
        return await tx.fetch(name, **values) if held else []

    return await database.run(work)
