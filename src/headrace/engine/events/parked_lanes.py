"""What the relay knows of parked rows: their topics and keys, so that what comes later waits behind them."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.model.event import OutboxRow
from headrace.model.session import LeaderTerm
from headrace.ports.outbox import Outbox

#: So many parked rows are learnt of the leader before; with more, every row is asked for.
MOST_LEARNT = 100_000

Lane = tuple[str, str]


def lane_of(row: OutboxRow) -> Lane:
    """Return what is kept in order: topic and key."""
    return row.outgoing.topic, row.outgoing.key


class ParkedLanes:
    """The lanes with a parked row. Only the leader parks rows, so that it knows of all of them while it leads.

    A lane is forgotten when the store says that its parked row is gone: an operator let it go. Its later rows are not
    sent from the batch that has them, but from the next, where what was let go stands before them.
    """

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._lanes: set[Lane] = set()
        self._term: LeaderTerm | None = None
        self._more = False

    def add(self, lane: Lane) -> None:
        """Note that a row is being parked."""
        self._lanes.add(lane)

    async def hold(self, rows: Sequence[OutboxRow], term: LeaderTerm) -> list[OutboxRow]:
        """Hold what waits behind parked rows, and return what is to be sent.

        Raises TermOverError: others may have parked rows since. The store is asked with every batch for that reason.
        """
        if self._term != term:
            parked = await self._outbox.list_parked(limit=MOST_LEARNT)
            self._lanes = {(one.topic, one.key) for one in parked}
            self._term, self._more = term, len(parked) >= MOST_LEARNT
        known = [row for row in rows if lane_of(row) in self._lanes]
        asked = rows if self._more else known
        held = set(await self._outbox.hold_events([row.position for row in asked], term=term))
        left = {row.position for row in known} | held
        self._lanes -= {lane_of(row) for row in known if row.position not in held}
        return [row for row in rows if row.position not in left]
