"""Resume handles: what a paused piece of work waits for, and who is woken once that has come.

The first of result, timeout, cancel and token ends a handle; what comes later finds it ended.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from headrace.model.errors import NotFoundError
from headrace.model.event import Event

#: A token begins with this, so that scanners for secrets know it.
TOKEN_PREFIX = "hrh_"  # noqa: S105 - no secret, but what one begins with


_FORM = re.compile(TOKEN_PREFIX + r"[A-Za-z0-9_-]{43}")


class HandleState(StrEnum):
    """`waiting → resolved | expired | cancelled`."""

    WAITING = "waiting"
    RESOLVED = "resolved"
    EXPIRED = "expired"
    CANCELLED = "cancelled"

    @property
    def final(self) -> bool:
        """Whether the state never changes again."""
        return self is not HandleState.WAITING


@dataclass(frozen=True, slots=True)
class NewHandle:
    """A handle to register.

    It is resolved once `expect_count` events of `expect_types` with the correlation id have come, where a request that
    became a dead letter counts as one that it would have caused. `expect_count` 0: by its token alone.
    """

    correlation_id: str
    expect_types: tuple[str, ...]
    expect_count: int
    #: From now on, by the store's clock.
    timeout: timedelta
    #: Types of events whose dead letters count; none: a dead letter is no end.
    request_types: tuple[str, ...] = ()
    #: Ids of the agents whose dead letters count; none: those of any.
    agents: tuple[str, ...] = ()
    #: Of the token, or "" for none.
    token_hash: str = ""
    #: Who is woken, beside the jobs parked on `signal_key`: "" or "prefect:<flow run id>".
    target: str = ""


@dataclass(frozen=True, slots=True)
class NotedEvent:
    """An event that a handle may wait for. `dead`: it became a dead letter, so that what it would cause never comes."""

    event: Event
    dead: bool = False
    #: Which agent gave up a dead one, and why.
    agent: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True)
class HandleView:
    """A handle, for reading."""

    correlation_id: str
    expect_types: tuple[str, ...]
    expect_count: int
    request_types: tuple[str, ...]
    agents: tuple[str, ...]
    state: HandleState
    #: How many of those it expects have come.
    arrived: int
    target: str
    #: Whether its target is still to be woken.
    wake_due: bool
    created_at: datetime
    expires_at: datetime
    ended_at: datetime | None = None
    #: JSON text that came with a token.
    payload: str | None = None


def signal_key(correlation_id: str) -> str:
    """Return the key of the signal that the end of a handle sends.

    >>> signal_key("c-1")
    'resume:c-1'
    """
    return f"resume:{correlation_id}"


def new_token() -> str:
    """Return a random token of 256 bits; whoever has it can end one wait, once."""
    return TOKEN_PREFIX + secrets.token_urlsafe(32)


def is_handle_token(text: str) -> bool:
    """Whether a text has the form of a token.

    >>> is_handle_token(new_token()), is_handle_token("hrh_guessed")
    (True, False)
    """
    return _FORM.fullmatch(text) is not None


def hash_token(token: str) -> str:
    """Return what is stored of a token. It is random and long, so that a plain hash is enough.

    >>> len(hash_token("hrh_x"))
    64
    """
    return hashlib.sha256(token.encode()).hexdigest()


def same_wait(handle: NewHandle, stored: HandleView) -> bool:
    """Whether a handle that is registered again is the one that is stored; the order of types and agents is nothing.

    Neither its token nor its time matters.
    """

    def facts(each: NewHandle | HandleView) -> tuple[object, ...]:
        names = (frozenset(each.expect_types), frozenset(each.request_types), frozenset(each.agents))
        return (*names, each.expect_count, each.target)

    return facts(handle) == facts(stored)


def expects(handle: NewHandle | HandleView, noted: NotedEvent) -> bool:
    """Whether an event is kept for a handle: a result by its type, a dead one by that of requests, and its agent."""
    if not noted.dead:
        return noted.event.type in handle.expect_types
    return noted.event.type in handle.request_types and (not handle.agents or noted.agent in handle.agents)


def count_arrived(kept: Sequence[NotedEvent]) -> int:
    """Return how many events count of those that a handle expects and that are kept: each id once.

    A dead one does not count once anything that it caused is kept. Before there is a handle, an event and its dead
    letters by each agent have to be kept apart: which of them it will expect is not known yet.

    >>> asked, answer = (Event("A.B.C", "B", "b", id=id, causation_id=cause) for id, cause in (("1", None), ("2", "1")))
    >>> count_arrived([NotedEvent(asked, dead=True)]), count_arrived([NotedEvent(asked, dead=True), NotedEvent(answer)])
    (1, 1)
    """
    caused = {noted.event.causation_id for noted in kept}
    return len({noted.event.id for noted in kept if not (noted.dead and noted.event.id in caused)})


def no_handle(correlation_id: str) -> NotFoundError:
    """Return the error that says that nothing waits for a correlation id."""
    return NotFoundError(f"no resume handle {correlation_id!r}; `headrace events handles list` lists those there are")
