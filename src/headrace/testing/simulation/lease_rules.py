"""Invariants of leases: a session that ended stays dead, and at most one term of leadership is valid."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from headrace.model.session import LeaderTerm
from headrace.testing.simulation.faults import Request
from headrace.testing.simulation.referee import Referee


class LeaseRules:
    """Keeps its own account of sessions and terms."""

    def __init__(self, referee: Referee) -> None:
        self._referee, self._state = referee, referee.state
        self._was_alive = False
        #: The last term, and when it ends.
        self._term: tuple[LeaderTerm, datetime] | None = None
        self._under_term = True

    def before(self, request: Request) -> None:
        """Note what holds when a call arrives."""
        if request.verb == "renew_session":
            self._was_alive = self._state.alive(request.args[0])
        elif isinstance(term := request.kwargs.get("term"), LeaderTerm):
            self._under_term = self._valid(term)

    def _valid(self, term: LeaderTerm) -> bool:
        return self._term is not None and self._term[0] == term and self._term[1] > self._state.now()

    def after(self, request: Request, moved: list[UUID], result: Any, error: BaseException | None) -> None:
        """Check renewals, elections, and writes that name a term."""
        match request.verb:
            case "renew_session":
                self._check_renewal(request.args[0], result)
            case "lead":
                self._check_election(request.args[0], result, self._state.now() + request.kwargs["lease"])
            case "resign" if self._valid(request.args[0]):
                self._term = (request.args[0], self._state.now())
            case "fail_overdue_jobs" | "sweep_batches" | "prune_jobs" if not self._under_term:
                if moved or (result and result != type(result)()):
                    what = f"{request.verb} of {request.actor} under {request.kwargs['term']} did {result}"
                    self._referee.breach("writes under older terms are refused", what)

    def _check_renewal(self, session: UUID, result: Any) -> None:
        if result.alive != self._was_alive or self._state.alive(session) != self._was_alive:
            what = f"the lease of {session} was {'valid' if self._was_alive else 'over'}, its renewal gave {result}"
            self._referee.breach("session expiry", what)

    def _check_election(self, session: UUID, result: LeaderTerm | None, expires_at: datetime) -> None:
        held = self._term is not None and self._term[1] > self._state.now()
        own = self._term is not None and self._term[0].session == session
        last = self._term[0].term if self._term is not None else 0
        expected = None if held and not own else LeaderTerm(session, last if held else last + 1)
        if result != expected:
            self._referee.breach("one valid leader term", f"{session} was given {result}; {expected} was right")
        if result is not None:
            self._term = (result, expires_at)

    def thorough(self) -> None:
        """Nothing beyond each call."""
