"""Priorities of details, 0 to 10 with 10 the most urgent, as priority classes of jobs, 0 the most urgent."""

from __future__ import annotations

from headrace.model.numbers import check_whole
from headrace.model.priority import Priority

LOWEST, HIGHEST, DEFAULT = 0, 10, 5

#: Class by priority, from 0 (bulk) to 10 (somebody waits).
_CLASSES = (
    *(Priority.BULK,) * 2,
    *(Priority.LOW,) * 2,
    *(Priority.STANDARD,) * 3,
    *(Priority.HIGH,) * 2,
    *(Priority.INTERACTIVE,) * 2,
)


def priority_class(priority: int) -> int:
    """Return the class of a priority. Raises InvalidInputError beyond 0 to 10.

    >>> [priority_class(each) for each in range(11)]
    [9, 9, 7, 7, 5, 5, 5, 3, 3, 0, 0]
    """
    return int(_CLASSES[check_whole("priority", priority, LOWEST, HIGHEST)])
