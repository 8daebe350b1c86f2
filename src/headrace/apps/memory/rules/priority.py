"""What goes first: a score of the user, the age, the kind of work and its retries, and the priority class of a score.

The score is taken once, when a job is enqueued, and its class is the job's `headrace.Priority`. From then on ageing is
the store's: it claims by `ready time − head start`, which never changes. So a job of a low score, such as an old one of
the bulk class, is overtaken only by jobs that became ready less than the difference of the head starts after it: at
most the ten minutes of class 0. What comes later stands behind it, whatever its score, and nothing starves.
"""

from __future__ import annotations

from datetime import timedelta
from math import isfinite

from headrace import InvalidInputError

#: Levels of users: 0 is everybody, each one more adds a tenth.
MOST_LEVEL = 10
FRESH, OLD = timedelta(minutes=5), timedelta(minutes=60)
KIND_WEIGHTS = {"consume": 1.0, "buffer": 1.2, "process": 1.5, "storage": 0.8}
RETRY_WEIGHT = 0.9
#: The least score of each class from 0 on; what is below the last of them is of class 9.
LEAST_SCORES = (4.0, 3.2, 2.5, 2.0, 1.5, 1.0, 0.75, 0.5, 0.35)


def score(level: int, age: timedelta, kind: str, retries: int) -> float:
    """Return (1 + 0.1 · level) · freshness · weight of the kind · 0.9^retries; the highest goes first.

    `level`: of the user, 0 to 10. `age`: of the oldest message it is about; below 5 minutes the freshness is 1.5, above
    60 minutes 0.5, else 1; clocks that differ may make it negative, which is fresh. `kind`: "consume" 1.0, "buffer"
    1.2, "process" 1.5, "storage" 0.8. `retries`: failed attempts before, from 0. Raises InvalidInputError.

    >>> score(2, timedelta(minutes=1), "process", 0)
    2.7
    >>> score(0, timedelta(hours=2), "storage", 1)
    0.36
    """
    weight = KIND_WEIGHTS.get(kind)
    if weight is None:
        raise InvalidInputError("kind", "must be one of " + ", ".join(KIND_WEIGHTS), kind)
    check_level(level)
    if isinstance(retries, bool) or not isinstance(retries, int) or retries < 0:
        raise InvalidInputError("retries", "must be a whole number from 0", retries)
    # Rounded: equal scores stay equal, whatever the order of the factors.
    return round((1 + level / 10) * freshness(age) * weight * RETRY_WEIGHT**retries, 9)


def freshness(age: timedelta) -> float:
    """Return 1.5 below 5 minutes, 0.5 above 60 minutes, else 1.

    >>> freshness(timedelta(minutes=5)), freshness(timedelta(minutes=60))
    (1.0, 1.0)
    """
    if age < FRESH:
        return 1.5
    return 0.5 if age > OLD else 1.0


def priority_of(score: float) -> int:
    """Return the class of a score for `options(priority=)`, 0 (first) to 9; a higher score is never of a later class.

    0 from 4, 1 from 3.2, 2 from 2.5, 3 from 2, 4 from 1.5, 5 from 1, 6 from 0.75, 7 from 0.5, 8 from 0.35, else 9.
    Raises InvalidInputError for what is no finite number from 0.

    >>> [priority_of(value) for value in (4.5, 2.25, 1.0, 0.2)]
    [0, 3, 5, 9]
    """
    if isinstance(score, bool) or not isinstance(score, int | float) or not isfinite(score) or score < 0:
        raise InvalidInputError("score", "must be a finite number from 0", score)
    return sum(score < least for least in LEAST_SCORES)


def check_level(level: object) -> int:
    """Return the level of a user, 0 to 10. Raises InvalidInputError."""
    if isinstance(level, bool) or not isinstance(level, int) or not 0 <= level <= MOST_LEVEL:
        raise InvalidInputError("level", f"must be a whole number from 0 to {MOST_LEVEL}", level)
    return level
