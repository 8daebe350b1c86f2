"""The audit: who did what to the jobs, queues and limits of a store, and what of it is kept.

An action is one request or command that changes something. Kept are names and numbers that tell what was asked for;
what users wrote (arguments, inputs, payloads) and what opens anything (tokens, secrets) is not.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from headrace.model.durations import format_duration

#: Who did it where no token was asked for, and where the route knows a credential of its own (webhooks, handles).
LOCAL, OWN_CREDENTIAL = "local", "own credential"
#: Of whom somebody is at the command line: `cli:USER@HOST`.
CLI = "cli:"
#: By way of the API, of a page of the dashboard, or of the command line.
API, PAGE, COMMAND = "api", "page", "cli"
#: Names of facts whose texts are kept; numbers and booleans are kept whatever they are called.
TEXTS = frozenset({
    "budget", "catch_up", "correlation_id", "dollars", "expires", "fair_key", "fingerprint", "first", "from", "kind",
    "name", "node", "on_close", "policy", "queue", "rate", "reason", "retention", "run_at", "scope", "scopes", "since",
    "state", "task", "timeout", "workflow",
})  # fmt: skip
#: Of these not even numbers are: users wrote them.
_NEVER = frozenset({
    "args", "arguments", "content", "data", "edited_value", "input", "items", "kwargs", "metadata", "password", "patch",
    "payload", "secret", "text", "token", "value",
})  # fmt: skip
#: A text that is longer is cut; facts that together are larger are left out, the last first.
MOST_TEXT, MOST_BYTES, MOST_LISTED = 200, 2 << 10, 20
#: What opens something, wherever it stands.
_SECRET = re.compile(r"hr[ah]_[A-Za-z0-9_-]+")

#: Where an action stands: actions are ordered by both.
Place = tuple[datetime, UUID]


@dataclass(frozen=True, slots=True)
class NewAction:
    """An action to note."""

    id: UUID
    #: Name of the token; `local`, `own credential` or `cli:USER@HOST` where there was none.
    who: str
    #: What was done, such as cancel_job: the `operationId` of the route.
    operation: str
    #: To what: the parameters of the path.
    subject: Mapping[str, str]
    #: HTTP status of the answer, or the exit code of a command.
    status: int
    token_id: UUID | None = None
    #: Where it came from; empty: from the command line.
    address: str = ""
    #: JSON text of what else is known of it; see `facts_of`.
    detail: str = "{}"
    via: str = API


@dataclass(frozen=True, slots=True)
class Action:
    """An action as the store has it; `at` is by the store's clock."""

    id: UUID
    at: datetime
    who: str
    token_id: UUID | None
    address: str
    operation: str
    subject: Mapping[str, str]
    detail: str
    status: int
    via: str

    @property
    def place(self) -> Place:
        """Where it stands."""
        return self.at, self.id


def noted(action: NewAction, at: datetime) -> Action:
    """Return an action as a store keeps it."""
    return Action(
        action.id, at, action.who, action.token_id, action.address, action.operation, dict(action.subject),
        action.detail, action.status, action.via,
    )  # fmt: skip


def facts_of(given: Mapping[str, Any], declared: Collection[str] | None = None) -> str:
    """Return what of a body is kept, as JSON text of at most 2 KiB; `declared`: the names that it may have.

    >>> facts_of({"reason": "the bill", "force": True, "payload": "x", "positions": [17], "note": "a user's"})
    '{"reason":"the bill","force":true,"positions":[17]}'
    >>> facts_of({"card": 4111}, declared=())
    '{}'
    """
    kept = {
        name: fact
        for name, value in given.items()
        if (declared is None or name in declared) and (fact := _fact(name, value)) is not None
    }
    while len(text := json.dumps(kept, ensure_ascii=False, separators=(",", ":")).encode()) > MOST_BYTES:
        kept.popitem()
    return text.decode()


def subject_of(parameters: Mapping[str, Any]) -> dict[str, str]:
    """Return to what something was done, without what would open anything.

    >>> subject_of({"job_id": UUID(int=7), "token": "hrh_abc"})
    {'job_id': '00000000-0000-0000-0000-000000000007'}
    """
    named = {name: value for name, value in parameters.items() if value is not None and name not in _NEVER}
    return {name: cut(str(value)) for name, value in named.items()}


def cut(text: str) -> str:
    """Return a text as it is kept: short, and without what would open anything.

    >>> cut("a" * 300) == "a" * 199 + "…", cut("hra_secret")
    (True, '…')
    """
    clean = _SECRET.sub("…", text[: 2 * MOST_TEXT]).encode("utf-8", "replace").decode()
    return clean if len(clean) <= MOST_TEXT else clean[: MOST_TEXT - 1] + "…"


def _fact(name: str, value: Any) -> Any:
    """Return what is kept of a value; None: nothing is."""
    if name in _NEVER:
        return None
    if isinstance(value, timedelta):
        return format_duration(value)
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return value if math.isfinite(value) and abs(value) < 1e18 else None
    if isinstance(value, list | tuple) and value and all(isinstance(one, int) for one in value):
        return list(value[:MOST_LISTED])
    if name not in TEXTS:
        return None
    if isinstance(value, list | tuple):
        return [cut(one) for one in value if isinstance(one, str)][:MOST_LISTED] or None
    return cut(value) if isinstance(value, str) else None
