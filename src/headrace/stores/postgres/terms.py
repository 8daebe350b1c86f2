"""Writes of the leader: none of them happens once its term is over."""

from __future__ import annotations

from typing import Any

from headrace.model.session import LeaderTerm
from headrace.stores.postgres.database import Database, Row, Transaction


def term_values(term: LeaderTerm) -> dict[str, Any]:
    """Return the parameters that name a term."""
    return {"session": term.session, "term": term.term, "role": term.role}


async def hold_term(on: Transaction | Database, term: LeaderTerm) -> bool:
    """Whether a term is current; no other of its role begins then before the transaction has ended.

    On the database itself that is the transaction of the question alone: the term was current when it was answered.
    """
    return bool(await on.fetch("hold_term", **term_values(term)))


async def fetch_under(database: Database, term: LeaderTerm | None, name: str, /, **values: Any) -> list[Row]:
    """Run a statement under a term, which it changes nothing without; None is an operator, who needs no term."""
    if term is None:
        return await database.fetch(name, **values)

    async def work(tx: Transaction) -> list[Row]:
        return await tx.fetch(name, **values) if await hold_term(tx, term) else []

    return await database.run(work)
