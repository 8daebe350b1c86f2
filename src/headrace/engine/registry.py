"""Task definitions: what the engine knows of a registered function."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any

from headrace.engine.codec import TaskCodec
from headrace.engine.conflicts import Declarations
from headrace.engine.gather_codec import GatherCodec
from headrace.model.backlog import Backlog
from headrace.model.backoff import Backoff
from headrace.model.breaker import BreakerRule
from headrace.model.errors import ConfigError
from headrace.model.gathering import Gather
from headrace.model.job import JobSpec
from headrace.model.limits import Declared
from headrace.model.queue import Fair, QueueRule


class RunsIn(StrEnum):
    """Where a handler runs."""

    #: on the event loop: `async def`
    LOOP = "loop"
    #: in a thread: `def`
    THREAD = "thread"
    #: in a child process, killed on timeout and cancel: CPU work and native code
    PROCESS = "process"


@dataclass(frozen=True, slots=True)
class TaskDef:
    """One task. `spec` is how its jobs are stored, `declares` the limits that it brings along."""

    name: str
    function: Callable[..., Any]
    runs_in: RunsIn
    spec: JobSpec
    backoff: Backoff
    declares: Declared = field(default_factory=Declared)
    #: The attempt fails when it reports no activity this long; None: no stall timer.
    stall_timeout: timedelta | None = None
    #: The handler takes jobs together, in a list; None: each alone.
    gather: Gather | None = None
    codec: TaskCodec = field(init=False)
    #: Where another process finds the function: "module:qualname", or "/path.py:qualname" for a script.
    target: str = field(init=False)

    @property
    def importable(self) -> bool:
        """Whether a child process can find the function: not one nested in another, nor typed into a shell."""
        return "<" not in self.target and not self.target.startswith("__main__:")

    def __post_init__(self) -> None:
        codec = TaskCodec(self.function) if self.gather is None else GatherCodec(self.function)
        object.__setattr__(self, "codec", codec)
        object.__setattr__(self, "target", _target(self.function))


def _target(function: Callable[..., Any]) -> str:
    """Return where a child process finds the function: its module, or its file when it was run as a script."""
    module = function.__module__
    if module == "__main__":
        main = sys.modules["__main__"]
        file = getattr(main, "__file__", None)
        spec = getattr(main, "__spec__", None)
        module = spec.name if spec is not None else str(Path(file).resolve()) if file else module
    return f"{module}:{function.__qualname__}"


class Registry:
    """The tasks of one app by name, and what it declares of queues."""

    def __init__(self) -> None:
        self._tasks: dict[str, TaskDef] = {}
        self.queue_rules: dict[str, QueueRule] = {}
        #: Called when the backlog of a queue becomes an alarm, and when it is over.
        self.backlog_hooks: list[Callable[[Backlog], Any]] = []

    def add(self, task: TaskDef) -> None:
        """Register a task. Raises ConfigError when the name is taken by another function."""
        known = self._tasks.get(task.name)
        if known is not None and known.target != task.target:
            raise ConfigError(
                f"task name {task.name!r} is used by {known.target} and {task.target}; give one another name="
            )
        if task.runs_in is RunsIn.LOOP and not inspect.iscoroutinefunction(task.function):
            raise ConfigError(f"task {task.name!r} is declared to run on the event loop but is not `async def`")
        self._tasks[task.name] = task

    def get(self, name: str) -> TaskDef | None:
        """Return a task, or None when this process does not know it."""
        return self._tasks.get(name)

    def __iter__(self) -> Iterator[TaskDef]:
        return iter(self._tasks.values())

    def __len__(self) -> int:
        return len(self._tasks)

    def queues(self) -> list[str]:
        """Return the queues of all tasks, sorted."""
        return sorted({task.spec.queue for task in self})

    def slots(self, queue: str, default: int) -> int:
        """Return the slots of a queue where nobody says: `default`, or room for two gathers of its largest task."""
        gathers = [task.gather.batch_size for task in self if task.gather and task.spec.queue == queue]
        return max(default, 2 * max(gathers, default=0))

    def expects_gate(self, queue: str) -> bool:
        """Whether tasks of a queue have gates, or the queue itself does."""
        rule = self.queue_rules.get(queue)
        declared = rule is not None and bool(rule.declared or rule.fair is Fair.BATCH)
        return declared or any(task.spec.queue == queue and task.spec.gate is not None for task in self)

    def declared(self) -> Declared:
        """Return what all tasks and queues declare. Raises ConfigError for two that do not agree.

        A breaker that tasks name and none declares has the rule of a plain `BreakerRule()`.
        """
        caps, rates, breakers = (Declarations(kind) for kind in ("cap", "rate limit", "circuit breaker"))
        sources = [(f"task {task.name}", task.declares) for task in self]
        sources += [(f"queue {rule.name}", rule.declared) for rule in self.queue_rules.values()]
        for source, declared in sources:
            caps.add(declared.caps, source)
            rates.add(declared.rates, source)
            breakers.add(declared.breakers, source)
        usual = dict.fromkeys(self.named_breakers(), BreakerRule())
        return Declared(caps.values, rates.values, usual | breakers.values)

    def named_breakers(self) -> dict[str, list[str]]:
        """Return the breakers that tasks name and none declares, each with its tasks."""
        declared = {name for task in self for name in task.declares.breakers}
        named = ((name, task) for task in self if task.spec.gate for name in task.spec.gate.breakers)
        return _by_name((name, task.name) for name, task in named if name not in declared)

    def named_limits(self) -> dict[str, list[str]]:
        """Return the rate limits that tasks name, each with its tasks."""
        return _by_name((name, task.name) for task in self if task.spec.gate for name, _ in task.spec.gate.limits)


def _by_name(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, task in sorted(pairs):
        found.setdefault(name, []).append(task)
    return found
