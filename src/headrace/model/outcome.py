"""The values a handler may end with. A plain return value means `Done`; an exception means surprise."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from headrace.model.errors import InvalidInputError

_PORT = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True)
class Done:
    """The job succeeded with `result`; in a workflow it leads on over the edges of `port`."""

    result: Any = None
    port: str = "main"


@dataclass(frozen=True, slots=True)
class Snooze:
    """Run again after `delay`: no error, so none of `max_attempts` is spent; `ctx.attempt` counts the run as well."""

    delay: timedelta | float | str


@dataclass(frozen=True, slots=True)
class Retry:
    """This attempt failed for `reason`; run again after `delay` (None: by the task's backoff). Spends an attempt."""

    reason: str = "retry requested"
    delay: timedelta | float | str | None = None


@dataclass(frozen=True, slots=True)
class Fail:
    """The job failed for good: no further attempt."""

    reason: str


@dataclass(frozen=True, slots=True)
class Cancel:
    """The job is no longer wanted: it ends as cancelled."""

    reason: str = "cancelled by its handler"


Outcome = Done | Snooze | Retry | Fail | Cancel


def check_port(value: object) -> str:
    """Return the name of an output port. Raises InvalidInputError.

    >>> check_port("main")
    'main'
    """
    if not isinstance(value, str) or not _PORT.fullmatch(value):
        raise InvalidInputError("Done.port", "must match [A-Za-z0-9_-]{1,64}", value)
    return value
