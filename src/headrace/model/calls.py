"""The ledger of model calls: what was sent, what was answered, and what may have been paid for nothing."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from headrace.model.ids import node_identity, uuid7
from headrace.model.llm import StoredAnswer
from headrace.model.quota import Estimate
from headrace.model.usage import Usage

#: Scope of a budget that holds for each day (UTC) anew.
DAY = "day"


class CallState(StrEnum):
    """`prepared → sent → received → settled | orphaned`; an orphaned call whose answer comes after all is settled."""

    #: it holds its key and its part of the budgets, and waits for the quota; nothing was sent
    PREPARED = "prepared"
    #: it was sent, or is being sent
    SENT = "sent"
    #: a part of the answer is stored; the rest is on its way
    RECEIVED = "received"
    #: it ended, and what it used is known
    SETTLED = "settled"
    #: it was sent, and nobody knows how it ended: it may have been paid for nothing
    ORPHANED = "orphaned"


#: States of calls that hold their key and their part of the budgets.
LIVE = frozenset({CallState.PREPARED, CallState.SENT, CallState.RECEIVED})


class Purpose(StrEnum):
    """Why a call was made."""

    ASK = "ask"
    #: an answer was cut or not usable at all: the whole is asked again
    REPAIR = "repair"
    #: only the items that failed are asked again
    REASK = "reask"
    #: another model is asked what one could not answer
    ESCALATE = "escalate"


@dataclass(frozen=True, slots=True)
class Origin:
    """For whom a call is made: the budgets it counts against, and whose memo it shares."""

    job_id: UUID | None = None
    batch_id: UUID | None = None
    run_id: UUID | None = None
    tenant: str | None = None
    #: The path of the node of the run. Of a stored call it is not known.
    node: str | None = field(default=None, compare=False)

    @property
    def identity(self) -> UUID | None:
        """What an answer of its own is kept for: the job, or the node of a run, whichever job calls it."""
        return self.job_id if self.run_id is None or self.node is None else node_identity(self.run_id, self.node)

    @property
    def scopes(self) -> tuple[str, ...]:
        """Scopes of the budgets that the call counts against, sorted.

        >>> Origin(tenant="acme").scopes
        ('day', 'tenant:acme')
        """
        named = {"batch": self.batch_id, "run": self.run_id, "tenant": self.tenant}
        return tuple(sorted((DAY, *(f"{kind}:{name}" for kind, name in named.items() if name is not None))))


#: Of the attempt that runs here; None outside of an attempt.
current_origin: ContextVar[Origin | None] = ContextVar("headrace_call_origin", default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewCall:
    """A call to be made."""

    #: the memo key of what is asked (64 hex digits)
    key: str
    #: name of the pool
    pool: str
    provider: str
    model: str
    estimate: Estimate
    origin: Origin = field(default_factory=Origin)
    purpose: Purpose = Purpose.ASK
    #: record it as sent at once, for it has its quota; else as prepared
    send: bool = True
    #: an answer that is stored already does not count: buy another one
    fresh: bool = False
    #: most calls of the pool in flight; None: no limit
    most_in_flight: int | None = None
    #: most calls of the pool in a day (UTC); None: no limit
    most_per_day: int | None = None
    id: UUID = field(default_factory=uuid7)

    @property
    def scopes(self) -> tuple[str, ...]:
        """Under which names the store adds up what it spends: its budgets', and the groups of `SpendGroup`; sorted."""
        own = (f"pool:{self.pool}", f"model:{self.provider}/{self.model}", f"purpose:{self.purpose}")
        return tuple(sorted((*self.origin.scopes, *own)))


class Verdict(StrEnum):
    """What the store said to a call."""

    #: it is recorded: make it (or, where it is only prepared, wait for the quota first)
    OPENED = "opened"
    #: it was paid before: here is the answer; nothing is recorded
    ANSWERED = "answered"
    #: a call of this very id ended before: another attempt is a call with an id of its own
    ENDED = "ended"
    #: an equal call of a living session is under way; nothing is recorded
    HELD = "held"
    #: a budget has no room for it; nothing is recorded
    OVER_BUDGET = "over_budget"
    #: as many calls of its pool are in flight as may be; nothing is recorded
    POOL_FULL = "pool_full"
    #: the pool's calls of this day are used up; nothing is recorded
    DAY_FULL = "day_full"


@dataclass(frozen=True, slots=True)
class Opening:
    """The store's answer to a new call."""

    verdict: Verdict
    #: with ANSWERED
    answer: StoredAnswer | None = None
    #: with OPENED: what an earlier call under this key stored of its answer before it was cut off, in order
    spooled: tuple[str, ...] = ()
    #: with OVER_BUDGET: whose budget
    scope: str | None = None


@dataclass(frozen=True, slots=True)
class SpooledPart:
    """A part of a call's streamed answer."""

    call: UUID
    #: from 0, without gaps
    number: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """How a call ended."""

    call: NewCall
    #: SETTLED, or ORPHANED where it was sent and no whole answer came (it may have been paid)
    state: CallState = CallState.SETTLED
    #: to be stored under the key; None: there is none, or it is not to be kept
    answer: StoredAnswer | None = None
    #: put the answer in the place of one that is stored
    replace: bool = False
    #: what it used, its money included; of an ORPHANED one what it may have used at most
    usage: Usage = field(default_factory=Usage)
    #: by which table it was priced; empty: the price is not known
    priced_by: str = ""
    #: code of the error it ended with; empty: none
    error: str = ""
    request_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CallView:
    """One call of the ledger, for reading."""

    id: UUID
    key: str
    state: CallState
    pool: str
    provider: str
    model: str
    purpose: Purpose
    origin: Origin
    estimate: Estimate
    usage: Usage
    priced_by: str
    error: str
    request_id: str | None
    opened_at: datetime
    ended_at: datetime | None
