"""Priority classes with head starts: a smaller number runs earlier, and nothing starves.

The claim walks one static key, `ready time − head start`. A job is therefore overtaken only by jobs that became
ready less than (their head start − its own) after it, whatever the load; ageing needs no work.
"""

from __future__ import annotations

from datetime import timedelta
from enum import IntEnum

from headrace.model.errors import InvalidInputError


class Priority(IntEnum):
    """Named classes; any number from 0 (earliest) to 9 is accepted."""

    INTERACTIVE = 0
    HIGH = 3
    STANDARD = 5
    LOW = 7
    BULK = 9


#: Seconds of head start per priority number: 10 minutes for interactive, none for bulk.
HEAD_START_SECONDS = (600, 450, 360, 300, 180, 120, 60, 30, 10, 0)


def parse_priority(value: Priority | str | int) -> int:
    """Return the number of a class given by name or number.

    Raises InvalidInputError for any other value.

    >>> parse_priority("high")
    3
    """
    if isinstance(value, str) and value.upper() in Priority.__members__:
        return int(Priority[value.upper()])
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 9:
        return int(value)
    names = ", ".join(name.lower() for name in Priority.__members__)
    raise InvalidInputError("priority", f"must be one of {names} or a number from 0 to 9", value)


def head_start(priority: int) -> timedelta:
    """Return how much earlier than its ready time a job of `priority` is sorted."""
    return timedelta(seconds=HEAD_START_SECONDS[priority])
