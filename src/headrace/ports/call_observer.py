"""Who is told of model calls: tracing and metrics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from headrace.model.calls import NewCall
from headrace.model.llm import Answer, CompletionRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class CallReport:
    """One call that ended, memo hits included."""

    call: NewCall
    request: CompletionRequest
    #: None: it ended with an error
    answer: Answer | None
    #: word of the error's class; empty: none
    error: str
    #: whether the answer came from the memo, or of an equal call in flight
    reused: bool
    #: wall clock in nanoseconds since the epoch: asked, sent to the provider (0: it was not), first part, ended
    asked_at: int
    sent_at: int
    first_part_at: int
    ended_at: int


class CallObserver(Protocol):
    """Is told of each call in the context of whoever asked first; must not raise, nor take long."""

    def ended(self, report: CallReport) -> None:
        """Take in a call that ended."""
        ...


class Observers:
    """Several observers as one."""

    def __init__(self, observers: Sequence[CallObserver] = ()) -> None:
        self._observers = tuple(observers)

    def ended(self, report: CallReport) -> None:
        """Tell each."""
        for observer in self._observers:
            observer.ended(report)
