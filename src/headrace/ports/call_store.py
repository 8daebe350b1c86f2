"""The call store port: the ledger of model calls, with the memo, the single flight and the budgets they go through.

What must hold together is one verb's argument: a call is opened against memo, other calls and budgets in one step, and
its answer, its cost and its end are stored in one. Each verb takes many calls, so that calls made at the same time
share one round trip and one commit; the calls of one list are taken in order, as if each were alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol
from uuid import UUID

from headrace.model.calls import NewCall, Opening, Settlement, SpooledPart
from headrace.model.llm import StoredAnswer


class CallStore(Protocol):
    """The ledger. All methods raise StoreUnavailableError; repeating one after a lost answer is safe."""

    async def open_calls(self, session: UUID, calls: Sequence[NewCall]) -> list[Opening]:
        """Open calls under a session and say for each what it may do; in the order of `calls`.

        In this order: an answer stored under the key stands (unless `fresh`: ANSWERED); a call that ended under this id
        is not opened again (ENDED); a live call under the key, of a session that is alive, holds it (HELD); the pool's
        calls in flight and of this day (UTC, by the store's clock; calls in flight count) are below their most
        (POOL_FULL, DAY_FULL); each budget among its scopes has room (OVER_BUDGET; `model/budget.py`). Then it is
        recorded as sent or prepared (OPENED), and what is spooled under the key is returned, up to the first number
        that is missing; what lies behind that is forgotten.

        After a lost answer a live call may be there under this very id. It is OPENED again, with no look at pool and
        budgets: under this session, and sent where it was only prepared and `send` asks for it. Where it is ANSWERED
        now it is removed.

        A live call of a dead session does not hold the key: a prepared one is removed, another becomes orphaned, and
        counts as such, before the next one is opened. Under other keys such calls count as in flight until they are
        reaped. Rivals for one key, and for the last place of a pool or budget, are served one after another, in
        whichever process they are. The session must be registered; whether it still lives is not asked.
        """
        ...

    async def send_calls(self, calls: Sequence[UUID]) -> frozenset[UUID]:
        """Record prepared calls as sent and return those that may be: one that was removed meanwhile may not.

        A live call that was sent before is returned too: it may be this one, whose answer was lost.
        """
        ...

    async def spool_items(self, parts: Sequence[SpooledPart]) -> None:
        """Store parts of streamed answers under the keys of their calls; these calls become received.

        Equal numbers under one key are written once. They are kept until a call under the key is settled with an
        answer, or they are pruned. Of a call that is not live nothing is stored, as another one may be under way; that
        is no matter of the other calls'.
        """
        ...

    async def settle_calls(self, settlements: Sequence[Settlement]) -> list[StoredAnswer | None]:
        """Record how calls ended, with their answers and costs, and return the answers that stand under their keys.

        When it returns, all of it is committed. Write-once: a call that is settled is left as it is, also its costs;
        an orphaned one is settled, and no longer counts as orphaned. An answer is stored unless its key has one (or
        `replace`, but for a call that is settled already), from anyone, dead sessions and unknown calls included. A
        prepared call that ends is removed and costs nothing. An unknown call is recorded, as opened now, where it used
        anything.

        What is spent is added, once for each call, to each of its scopes, on the day (UTC) on which it was opened.
        Where one list settles several answers under a key, all are told the one that stands in the end.
        """
        ...

    async def reap_calls(self, *, limit: int) -> int:
        """End up to `limit` live calls of sessions that are not alive, as `open_calls` does; return how many.

        What an orphaned call may have used at most is its estimate.
        """
        ...
