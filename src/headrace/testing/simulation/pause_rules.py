"""Invariants of pauses: one winner per handle, told to all who wait; events count once, early ones too.

They keep their own account of what was registered and noted, and compare it with the store after every call.
"""

from __future__ import annotations

import json
from collections.abc import Coroutine
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

from headrace.model.job import Completion, JobState
from headrace.model.resume_handle import HandleState, HandleView, NewHandle, NotedEvent, signal_key
from headrace.ports.handle_store import HandleStore
from headrace.testing.simulation.faults import Request
from headrace.testing.simulation.job_rules import COMPLETING
from headrace.testing.simulation.referee import Referee

T = TypeVar("T")

ONE = "one handle per correlation id"
ONE_WINNER = "the first end stands"
FAIR = "nothing ends without a cause"
COUNTED_ONCE = "no event counts twice"
COUNTED = "no event is lost, early ones neither"
RESOLVED = "what has come resolves"
WOKEN = "an end wakes who waits"
HONEST = "answers tell what is stored"
TOLD = "who waits sees the winner"

#: How a handle may end, by the verb that ends it.
ENDS = {
    "register_handle": HandleState.RESOLVED, "note_event": HandleState.RESOLVED,
    "resolve_by_token": HandleState.RESOLVED, "cancel_handle": HandleState.CANCELLED,
    "expire_handles": HandleState.EXPIRED,
}  # fmt: skip


def at_once(work: Coroutine[Any, Any, T]) -> T:
    """Return the answer of a verb of the memory store, which never suspends."""
    try:
        work.send(None)
    except StopIteration as end:
        answer: T = end.value
        return answer
    raise AssertionError("a verb that only reads gave others a turn")


@dataclass(slots=True)
class Account:
    """What is known of one correlation id. `noted` by event, dead or not, and agent: what came before its end."""

    new: NewHandle | None = None
    created_at: datetime | None = None
    noted: dict[tuple[str, bool, str], NotedEvent] = field(default_factory=dict)
    view: HandleView | None = None

    def counting(self) -> tuple[set[str], set[str]]:
        """Return the ids of the results that count, and of the requests that count as dead."""
        new = self.new
        if new is None:
            return set(), set()
        results = [one.event for one in self.noted.values() if not one.dead and one.event.type in new.expect_types]
        answered = {event.causation_id for event in results}
        dead = {
            one.event.id
            for one in self.noted.values()
            if one.dead and one.event.type in new.request_types and (not new.agents or one.agent in new.agents)
        }
        return {event.id for event in results}, dead - answered


class PauseRules:
    """Follows every handle from call to call."""

    def __init__(self, referee: Referee, handles: HandleStore) -> None:
        self._referee, self._state, self._handles = referee, referee.state, handles
        self.accounts: dict[str, Account] = {}
        #: The correlation id that a job waits for.
        self.waits: dict[UUID, str] = {}
        self.early = 0

    def before(self, request: Request) -> None:
        """Nothing to prepare."""

    def after(self, request: Request, moved: list[UUID], result: Any, error: BaseException | None) -> None:
        """Keep the account, and look at the handles that a call may have touched."""
        if request.verb in ENDS:
            for correlation_id in self._touched(request, error):
                self._look(correlation_id, request)
            if error is None:
                self._check_answer(request, result)
        if request.verb in COMPLETING:
            for done in request.args[1]:
                self._check_left(done)
        for job_id in moved:
            self._check_parked(job_id)
            self._check_told(job_id)

    def _touched(self, request: Request, error: BaseException | None) -> list[str]:
        """Return the handles that a call is about, having noted what it brought."""
        given = request.args[0] if request.args else None
        if isinstance(given, NewHandle):
            account = self._account(given.correlation_id)
            if error is None and account.new is None:
                account.new, account.created_at = given, self._state.now()
                self.early += bool(sum(map(len, account.counting())))
            return [given.correlation_id]
        if isinstance(given, NotedEvent):
            account = self._account(given.event.correlation_id or "")
            if error is None and not (account.view is not None and account.view.state.final):
                account.noted.setdefault((given.event.id, given.dead, given.agent), given)
            return [given.event.correlation_id or ""]
        return [str(given)] if request.verb == "cancel_handle" else list(self.accounts)

    def _account(self, correlation_id: str) -> Account:
        return self.accounts.setdefault(correlation_id, Account())

    def _breach(self, invariant: str, correlation_id: str, what: str) -> None:
        self._referee.breach(invariant, f"handle {correlation_id} {what}")

    def _look(self, correlation_id: str, request: Request) -> None:
        account, view = self._account(correlation_id), at_once(self._handles.get_handle(correlation_id))
        before, account.view = account.view, view
        if view is None or account.new is None:
            if account.new is not None or view is not None:
                self._breach(ONE, correlation_id, f"is {view} after {account.new} was registered")
            return
        self._check_same(account, view)
        if before is not None and before.state.final:
            if _lasting(before) != _lasting(view):
                self._breach(ONE_WINNER, correlation_id, f"was {before} and is {view} after {request.verb}")
            return
        self._check_count(account, view)
        if view.state.final:
            self._check_end(account.new, view, request)
        self._check_signal(view)

    def _check_same(self, account: Account, view: HandleView) -> None:
        new, created_at = account.new, account.created_at
        assert new is not None
        assert created_at is not None
        facts = (view.created_at, view.expires_at, view.expect_count, view.target)
        if facts != (created_at, created_at + new.timeout, new.expect_count, new.target):
            self._breach(ONE, new.correlation_id, f"is {view}, and {new} was registered at {created_at}")

    def _check_count(self, account: Account, view: HandleView) -> None:
        results, dead = account.counting()
        came = len(results) + len(dead)
        if view.arrived > came:
            self._breach(COUNTED_ONCE, view.correlation_id, f"counts {view.arrived}: {results} and {dead} came")
        if view.arrived < came:
            self._breach(COUNTED, view.correlation_id, f"counts {view.arrived}: {results} and {dead} came")
        if not view.state.final and 0 < view.expect_count <= came:
            self._breach(RESOLVED, view.correlation_id, f"waits, and {results} and {dead} came")

    def _check_end(self, new: NewHandle, view: HandleView, request: Request) -> None:
        verb, overdue = request.verb, view.expires_at <= self._state.now()
        if verb == "resolve_by_token" and overdue:
            verb = "expire_handles"  # a token that comes too late ends the handle as a sweep would
        fair = view.state is ENDS[verb] and view.ended_at == self._state.now()
        if verb in ("note_event", "register_handle"):
            fair &= 0 < new.expect_count <= view.arrived
        elif verb == "resolve_by_token":
            fair &= (new.token_hash, view.payload) == request.args
        elif verb == "expire_handles":
            fair &= overdue
        if not fair or (view.payload is not None) != (verb == "resolve_by_token"):
            self._breach(FAIR, view.correlation_id, f"ended by {verb}{request.args}: {view}")
        if view.wake_due != bool(new.target):
            self._breach(WOKEN, view.correlation_id, f"has the target {new.target!r}, and wake_due is {view.wake_due}")

    def _check_signal(self, view: HandleView) -> None:
        signal = self._state.parked.signals.get(signal_key(view.correlation_id))
        sent = None if signal is None else json.loads(signal.payload)
        if sent != ({"state": view.state.value} if view.state.final else None):
            self._breach(WOKEN, view.correlation_id, f"is {view.state}, and its signal is {sent}")

        waiting = self._state.parked.waiting.get(signal_key(view.correlation_id))
        if view.state.final and waiting:
            self._breach(WOKEN, view.correlation_id, f"is {view.state}, and jobs wait on: {list(waiting)}")

    def _check_left(self, done: Completion) -> None:
        """Require that a job which leaves its slot waits for its signal, not for a time alone."""
        if done.delay and not done.charged and not done.state.final:
            self._breach(WOKEN, self.waits[done.job_id], f"is waited for by job {done.job_id} for {done.delay} alone")

    def _check_parked(self, job_id: UUID) -> None:
        """Require that a job waits for the signal of its handle, and that this has not come yet."""
        job = self._state.jobs.get(job_id)
        if job is None or job.state is not JobState.PARKED:
            return
        key = signal_key(self.waits[job_id])
        if job.parked_on != key or key in self._state.parked.signals:
            self._breach(WOKEN, self.waits[job_id], f"is waited for by job {job_id}, parked on {job.parked_on}")

    def _check_answer(self, request: Request, result: Any) -> None:
        for view in result if isinstance(result, list) else [result]:
            if view is not None and view != self._account(view.correlation_id).view:
                self._breach(HONEST, view.correlation_id, f"is other than {request.verb} says: {view}")

    def check_taken(self, noted: NotedEvent) -> None:
        """Require that an event that the service has taken is in the account, unless its handle needs it no more."""
        account = self._account(noted.event.correlation_id or "")
        over = account.view is not None and account.view.state.final
        if over or (noted.event.id, noted.dead, noted.agent) in account.noted:
            return
        added = replace(account, noted={**account.noted, (noted.event.id, noted.dead, noted.agent): noted})
        if account.new is None or added.counting() != account.counting():
            self._breach(
                COUNTED, noted.event.correlation_id or "", f"was not told of {noted.event.id}, which was taken"
            )

    def _check_told(self, job_id: UUID) -> None:
        """Compare what a job that waited returned with what became of its handle."""
        row = self._state.finished.get(job_id)
        if row is None or row.state is JobState.CANCELLED:
            return
        correlation_id = self.waits[job_id]
        account = self._account(correlation_id)
        view = account.view
        told = json.loads(row.result or "null")
        if row.state is not JobState.SUCCEEDED or view is None or told != _expected(account, view):
            self._breach(TOLD, correlation_id, f"is {view}; its job {job_id} is {row.state}: {told} {row.error}")

    def thorough(self) -> None:
        """Nothing beyond each call."""


def _lasting(view: HandleView) -> HandleView:
    """Return what must not change once a handle has ended."""
    return replace(view, wake_due=False)


def _expected(account: Account, view: HandleView) -> Any:
    """Return what a job that waits is to be told."""
    if view.state is not HandleState.RESOLVED:
        return [view.state.value]
    results, dead = account.counting()
    return [view.state.value, sorted(results), sorted(dead), json.loads(view.payload or "null")]
