"""Figures of batches of details, folded from the feed of those that ended, as Prometheus reads them.

The feed `details.done` has one entry per ended batch. Each process that is asked for figures folds the feed from where
it was; a batch counts once, whoever asks and however often. Labels of types are the known kinds, else `other`, so that
nobody can make more of them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from headrace.apps.details.kinds import KINDS, OTHER
from headrace.apps.details.priorities import HIGHEST, LOWEST

#: Upper bounds in seconds, close where the promises are: 2 s for the first response, 5 s for all.
BOUNDS = (0.25, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 7.5, 10.0, 30.0, 60.0, 300.0)
#: How subtasks end; other words are counted together.
STATUSES = ("completed", "partial", "failed", "dead")

#: Labels of types.
LABELS = (*KINDS, OTHER)

TASKS, DURATION, FIRST = "batch_tasks_total", "batch_task_duration_seconds", "batch_first_response_seconds"
SIZE, DEAD = "batch_queue_size", "batch_dead_letters_total"


@dataclass(slots=True)
class Histogram:
    """Counts of values by upper bound.

    >>> histogram = Histogram()
    >>> for seconds in (0.2, 2.0, 400.0): histogram.add(seconds)
    >>> histogram.counts[0], histogram.counts[4], histogram.counts[-1], histogram.total
    (1, 1, 1, 402.2)
    """

    counts: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS) + 1))
    total: float = 0.0

    def add(self, value: float) -> None:
        """Count a value."""
        self.counts[bisect_left(BOUNDS, value)] += 1
        self.total += value

    def lines(self, name: str, label: str) -> Iterator[str]:
        """The histogram of one label in Prometheus's text format."""
        below = 0
        for bound, count in zip((*BOUNDS, None), self.counts, strict=True):
            below += count
            yield f'{name}_bucket{{{label},le="{"+Inf" if bound is None else f"{bound:g}"}"}} {below}'
        yield f"{name}_sum{{{label}}} {round(self.total, 6)}"
        yield f"{name}_count{{{label}}} {below}"


@dataclass(slots=True)
class Figures:
    """What ended batches add up to, up to one entry of the feed."""

    #: Number of the last entry that is counted.
    seq: int = 0
    #: Subtasks by label of type and status.
    tasks: Counter[tuple[str, str]] = field(default_factory=Counter)
    durations: dict[str, Histogram] = field(default_factory=dict)
    first_responses: dict[str, Histogram] = field(default_factory=dict)
    #: Those that ended as dead letters, by label of type.
    dead_letters: Counter[str] = field(default_factory=Counter)

    def add(self, seq: int, done: Mapping[str, Any]) -> None:
        """Count an entry of the feed, unless it is counted already. What is not as it should be counts as nothing."""
        if seq <= self.seq:
            return
        self.seq = seq
        label = label_of(done.get("type"))
        for task in _tasks(done):
            self.tasks[label, task["status"] if task["status"] in STATUSES else OTHER] += 1
            _observe(self.durations, label, task.get("seconds"))
        _observe(self.first_responses, label, done.get("first_response_seconds"))
        dead = done.get("dead_letters")
        self.dead_letters[label] += dead if isinstance(dead, int) and dead > 0 else 0

    def expose(self) -> str:
        """Return the figures in Prometheus's text format.

        >>> figures = Figures()
        >>> figures.add(1, {"type": "skill", "tasks": [{"status": "completed", "seconds": 2.5}]})
        >>> print(figures.expose().splitlines()[2])
        batch_tasks_total{type="skill",status="completed"} 1
        """
        return "\n".join([*self._subtasks(), *self._histograms(), *self._dead()]) + "\n"

    def _subtasks(self) -> Iterator[str]:
        yield from _head(TASKS, "counter", "Subtasks of ended batches, by type and how they ended.")
        for (label, status), count in sorted(self.tasks.items()):
            yield f'{TASKS}{{type="{label}",status="{status}"}} {count}'

    def _histograms(self) -> Iterator[str]:
        meanings = {
            DURATION: ("How long subtasks were written.", self.durations),
            FIRST: ("From a request to its first response.", self.first_responses),
        }
        for name, (meaning, by_label) in meanings.items():
            yield from _head(name, "histogram", meaning)
            for label, histogram in sorted(by_label.items()):
                yield from histogram.lines(name, f'type="{label}"')

    def _dead(self) -> Iterator[str]:
        # All labels from the start: a rate over a series that begins with its first dead letter does not see that one.
        yield from _head(DEAD, "counter", "Subtasks that ended as dead letters, by type.")
        for label in LABELS:
            yield f'{DEAD}{{type="{label}"}} {self.dead_letters[label]}'


def label_of(type_: object) -> str:
    """Return the label of a type: a known kind, else `other`.

    >>> label_of("skill"), label_of("ship_name"), label_of(None)
    ('skill', 'other', 'other')
    """
    return type_ if isinstance(type_, str) and type_ in KINDS else OTHER


def _tasks(done: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    tasks = done.get("tasks")
    for task in tasks if isinstance(tasks, list) else ():
        if isinstance(task, Mapping) and isinstance(task.get("status"), str):
            yield task


def _observe(histograms: dict[str, Histogram], label: str, seconds: object) -> None:
    if isinstance(seconds, int | float) and not isinstance(seconds, bool) and seconds >= 0:
        histograms.setdefault(label, Histogram()).add(float(seconds))


def expose_sizes(waiting: Mapping[int, int]) -> str:
    """Return how many jobs of details wait, by the priority of their request, in Prometheus's text format.

    >>> print(expose_sizes({5: 2}).splitlines()[7])
    batch_queue_size{priority="5"} 2
    """
    head = _head(SIZE, "gauge", "Jobs of details that wait, by the priority of their request.")
    sizes = (f'{SIZE}{{priority="{each}"}} {waiting.get(each, 0)}' for each in range(LOWEST, HIGHEST + 1))
    return "\n".join([*head, *sizes]) + "\n"


def _head(name: str, kind: str, meaning: str) -> Iterator[str]:
    yield f"# HELP {name} {meaning}"
    yield f"# TYPE {name} {kind}"
