"""Resume handles in memory."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime, timedelta
from itertools import islice

from headrace.model.errors import ConflictError, HandleExpiredError, InvalidInputError, NotFoundError
from headrace.model.names import check_key
from headrace.model.resume_handle import (
    HandleState,
    HandleView,
    NewHandle,
    NotedEvent,
    no_handle,
    same_wait,
    signal_key,
)
from headrace.model.session import LeaderTerm
from headrace.ports.notifier import Notifier
from headrace.stores.memory import signalling
from headrace.stores.memory.handles import Handle
from headrace.stores.memory.leadership import leads
from headrace.stores.memory.state import State, atomic

#: What an event that came early is known by: several agents may have given up the same one.
_Known = tuple[str, bool, str]


class MemoryHandleStore:
    """`ports.handle_store.HandleStore` over dicts; the port says what each verb promises."""

    def __init__(self, state: State, notifier: Notifier) -> None:
        self._state, self._notifier = state, notifier
        self._rows: dict[str, Handle] = {}
        #: Events of correlation ids that have no handle, and when they came.
        self._early: defaultdict[str, dict[_Known, tuple[datetime, NotedEvent]]] = defaultdict(dict)

    @atomic
    async def register_handle(self, handle: NewHandle) -> HandleView:
        """Store a handle with what came early, once."""
        row = self._rows.get(handle.correlation_id)
        if row is None:
            now = self._state.now()
            row = self._rows[handle.correlation_id] = Handle(handle, now, now + handle.timeout)
            for _, noted in self._early.pop(handle.correlation_id, {}).values():
                row.keep(noted)
            self._resolve(row)
        elif not same_wait(handle, row.view()):
            raise ConflictError(
                f"Correlation id {handle.correlation_id!r} has a handle that waits for something else. "
                "Use another correlation id, or register the same types, count, agents and target again."
            )
        return row.view()

    @atomic
    async def note_event(self, noted: NotedEvent) -> HandleView | None:
        """Keep an event that a handle expects, or may come to expect."""
        correlation_id = noted.event.correlation_id
        if correlation_id is None or not _fits(correlation_id):
            return None
        row = self._rows.get(correlation_id)
        if row is None:
            known = noted.event.id, noted.dead, noted.agent
            self._early[correlation_id].setdefault(known, (self._state.now(), noted))
            return None
        if not row.state.final:
            row.keep(noted)
            self._resolve(row)
        return row.view()

    @atomic
    async def resolve_by_token(self, token_hash: str, payload: str) -> HandleView:
        """End a handle by its token, once."""
        row = next((row for row in self._rows.values() if token_hash and row.new.token_hash == token_hash), None)
        if row is None:
            raise NotFoundError("There is no handle with this token. It never existed, or its retention is over.")
        if not row.state.final and row.expires_at <= self._state.now():
            self._end(row, HandleState.EXPIRED)
        if row.state is HandleState.EXPIRED:
            raise HandleExpiredError(f"The handle of {row.new.correlation_id!r} expired at {row.ended_at}.")
        if row.state.final and row.payload != payload:
            raise ConflictError(f"The handle of {row.new.correlation_id!r} is {row.state} already; a token works once.")
        if not row.state.final:
            row.payload = payload
            self._end(row, HandleState.RESOLVED)
        return row.view()

    @atomic
    async def cancel_handle(self, correlation_id: str) -> HandleView:
        """End a waiting handle."""
        row = self._rows.get(correlation_id)
        if row is None:
            raise no_handle(correlation_id)
        if not row.state.final:
            self._end(row, HandleState.CANCELLED)
        return row.view()

    @atomic
    async def expire_handles(self, *, limit: int) -> list[HandleView]:
        """End waiting handles whose time has come, the longest due first."""
        now = self._state.now()
        due = [row for row in self._rows.values() if not row.state.final and row.expires_at <= now]
        chosen = sorted(due, key=lambda row: row.expires_at)[:limit]
        for row in chosen:
            self._end(row, HandleState.EXPIRED)
        return [row.view() for row in chosen]

    def _resolve(self, row: Handle) -> None:
        if row.complete:
            self._end(row, HandleState.RESOLVED)

    def _end(self, row: Handle, final: HandleState) -> None:
        """End a handle and wake who waits for that."""
        row.state, row.ended_at = final, self._state.now()
        if row.new.target:
            row.wake_at = row.ended_at
        key = signal_key(row.new.correlation_id)
        for queue in signalling.send(self._state, key, f'{{"state":"{final}"}}') or ():
            self._notifier.hint(f"queue:{queue}")

    @atomic
    async def due_wakes(self, *, limit: int, again_in: timedelta) -> list[HandleView]:
        """Return handles whose target is to be woken now, the longest due first."""
        now = self._state.now()
        due = [(row.wake_at, key) for key, row in self._rows.items() if row.wake_at is not None and row.wake_at <= now]
        chosen = [self._rows[key] for _, key in sorted(due)[:limit]]
        for row in chosen:
            row.wake_at = now + again_in
        return [row.view() for row in chosen]

    @atomic
    async def mark_woken(self, correlation_id: str) -> None:
        """Forget that a target is to be woken."""
        row = self._rows.get(correlation_id)
        if row is not None:
            row.wake_at = None

    @atomic
    async def get_handle(self, correlation_id: str) -> HandleView | None:
        """Return a handle."""
        row = self._rows.get(correlation_id)
        return None if row is None else row.view()

    @atomic
    async def list_handles(self, *, waiting: bool, limit: int) -> list[HandleView]:
        """Return handles, the newest first."""
        rows = [row for row in self._rows.values() if not (waiting and row.state.final)]
        newest = sorted(rows, key=lambda row: (row.created_at, row.new.correlation_id), reverse=True)
        return [row.view() for row in newest[:limit]]

    @atomic
    async def noted_events(self, correlation_id: str) -> list[NotedEvent]:
        """Return what a handle expects and has come."""
        row = self._rows.get(correlation_id)
        return [] if row is None else list(row.kept.values())

    @atomic
    async def prune_handles(self, *, older_than: timedelta, limit: int, term: LeaderTerm | None = None) -> int:
        """Remove old handles, and events that came early long ago; nothing under a term that is over."""
        if term is not None and not leads(self._state, term):
            return 0
        until = self._state.now() - older_than
        ended = (key for key, row in self._rows.items() if row.ended_at is not None and row.ended_at <= until)
        old = list(islice(ended, limit))
        for key in old:
            del self._rows[key]
        return len(old) + self._forget_early(until, limit - len(old))

    def _forget_early(self, until: datetime, limit: int) -> int:
        """Forget old early events of up to `limit` correlation ids; return of how many none is left."""
        came = {key: [at for at, _ in kept.values()] for key, kept in self._early.items()}
        old = list(islice((key for key, times in came.items() if min(times) <= until), limit))
        for key in old:
            young = {known: (at, noted) for known, (at, noted) in self._early.pop(key).items() if at > until}
            if young:
                self._early[key] = young
        return sum(key not in self._early for key in old)


def _fits(correlation_id: str) -> bool:
    """Whether a handle may have this correlation id; events of others come with whatever they have."""
    try:
        check_key("correlation_id", correlation_id)
    except InvalidInputError:
        return False
    return True
