"""Weighted start-time fair queueing over the fair keys of a queue.

After Goyal, Vin and Cheng, "Start-time Fair Queueing" (SIGCOMM 1996). Each fair key f has a finish tag F; the queue
has a virtual time V, the start tag of the job that started last. A job of f that starts now has the start tag
S = max(V, F), and leaves F = S + cost / weight behind. The job with the smallest start tag goes first.

Tags are moved when a job *starts*, not when it is enqueued: a job that was cancelled used no share, a weight that was
changed acts with the next start, and many enqueuers of one key are one key. A key that had nothing waiting begins at
V: it gains its share at once and saves nothing up.

Where a start leaves nothing waiting, held up or not, a busy period is over: V becomes the largest finish tag. No tag
says anything then, so all can be dropped, and whoever comes next starts level with everybody else.

Only differences of tags say anything, and doubles tell tags apart the worse the larger they are. A job may add up to
1e12 (cost 1e9 at weight 0.001), so an admission that finds V at `HIGH_TIME` takes it off all tags first.
"""

from __future__ import annotations

from collections.abc import Iterable

#: A virtual time that is taken off all tags: below it they are exact to 1e-7.
HIGH_TIME = 2.0**30


def start_tag(virtual: float, finish: float | None) -> float:
    """Return the start tag of the next job of a fair key whose finish tag is `finish` (None: it never ran a job).

    >>> start_tag(10.0, 4.0), start_tag(10.0, 12.5)
    (10.0, 12.5)
    """
    return virtual if finish is None else max(virtual, finish)


def finish_tag(start: float, cost: float, weight: float) -> float:
    """Return the finish tag that a job leaves behind.

    >>> finish_tag(10.0, cost=3.0, weight=2.0)
    11.5
    """
    return start + cost / weight


def rest_time(virtual: float, finishes: Iterable[float]) -> float:
    """Return the virtual time of a queue once nothing waits in it, whose fair keys have these finish tags.

    >>> rest_time(10.0, [4.0, 12.5]), rest_time(10.0, [])
    (12.5, 10.0)
    """
    return max([virtual, *finishes])


def jain_index(shares: list[float]) -> float:
    """Return Jain's fairness index of shares: 1 for equal ones, 1/n where one has everything.

    Jain, Chiu and Hawe, DEC-TR-301 (1984): (Σx)² / (n · Σx²).

    >>> jain_index([1.0, 1.0, 1.0, 1.0]), jain_index([1.0, 0.0, 0.0, 0.0])
    (1.0, 0.25)
    """
    total = sum(share * share for share in shares)
    return sum(shares) ** 2 / (len(shares) * total) if total else 1.0
