"""How far a run of a flow is: one line on a terminal that changes, and nothing elsewhere."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping, Sequence

from headrace.apps.flows.commands.telling import plain
from headrace.model.run import NodeState


def line_of(ids: Mapping[str, str], states: Mapping[str, NodeState]) -> tuple[int, str]:
    """Return how many nodes of a flow have ended, and what the others do. `ids`: of the run, by the names of nodes.

    >>> line_of({"Go": "go", "Fetch": "fetch"}, {"go": NodeState.SUCCESS, "fetch/each[0]/call": NodeState.SUCCESS})
    (1, 'Fetch (1 within)')
    """
    ended = [name for name, one in ids.items() if one in states and states[one].final]
    within = Counter(path.replace("[", "/").partition("/")[0] for path, state in states.items() if state.final)
    begun = [
        f"{name} ({within[one]:,} within)" if within[one] else name
        for name, one in ids.items()
        if name not in ended and (within[one] or states.get(one) in (NodeState.RUNNING, NodeState.PARKED))
    ]
    return len(ended), ", ".join(begun[:3]) + (" …" if len(begun) > 3 else "")


class NodesBar:
    """A bar of nodes on standard error, where that is a terminal."""

    def __init__(self, ids: Mapping[str, str]) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        self._ids = ids
        self._bar = Progress(
            BarColumn(), MofNCompleteColumn(), TextColumn("nodes"), TimeElapsedColumn(),
            TextColumn("{task.fields[doing]}", markup=False), console=Console(stderr=True), transient=True,
        )  # fmt: skip
        self._task = self._bar.add_task("", total=len(ids), doing="")
        self._bar.start()

    def show(self, states: Mapping[str, NodeState]) -> None:
        """Draw the bar anew."""
        ended, doing = line_of(self._ids, states)
        self._bar.update(self._task, completed=ended, doing=plain(doing))

    def close(self) -> None:
        """Take the bar away: a table follows."""
        self._bar.stop()


def new_bar(ids: Mapping[str, str], names: Sequence[str]) -> NodesBar | None:
    """Return the bar of those nodes; None where nobody would see it."""
    return NodesBar({name: ids[name] for name in names}) if sys.stderr.isatty() else None
