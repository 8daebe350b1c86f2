"""The critical path of a run: the nodes without which it would have ended earlier."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

#: When a node began and when it ended; of one that runs, what is now.
Times = tuple[datetime, datetime]


def critical_path(before: Mapping[str, Sequence[str]], times: Mapping[str, Times]) -> list[str]:
    """Return the nodes that decide when a run ends, the first one first; [] where nothing has begun.

    It is followed back from the node that ended last, each time to the one of those before it that ended last: that is
    what it waited for. `before` names the predecessors of each node; nodes without times did not run.

    >>> at = [datetime(2026, 1, 1, 0, 0, second) for second in range(9)]
    >>> before = {"a": [], "slow": ["a"], "fast": ["a"], "end": ["slow", "fast"]}
    >>> times = {"a": (at[0], at[1]), "slow": (at[1], at[7]), "fast": (at[1], at[2]), "end": (at[7], at[8])}
    >>> critical_path(before, times)
    ['a', 'slow', 'end']
    """
    path: list[str] = []
    left = [name for name in before if name in times]
    while left:
        # Of those that ended together the first in the order of the graph, so that it is always the same one.
        last = max(left, key=lambda name: times[name][1])
        path.append(last)
        left = [name for name in before[last] if name in times and name not in path]
    return path[::-1]
