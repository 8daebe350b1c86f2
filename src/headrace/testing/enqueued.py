"""A look at what was enqueued, with an error that shows what was enqueued instead."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from headrace.app import App
from headrace.model.errors import InvalidInputError
from headrace.model.job import JobView
from headrace.tasks import Task
from headrace.testing.apps import tables_of

#: Jobs of the task that an error shows.
_SHOWN = 5
_LONGEST_VALUE = 60


def assert_enqueued(
    app: App, task: Task[..., Any], /, *args: Any, count: int | None = None, **kwargs: Any
) -> list[JobView]:
    """Assert that jobs of `task` with these arguments were enqueued in an app in memory, and return them.

    Arguments that are not given may be anything. `count`: exactly so many; 0: none. Jobs count whatever became of
    them, items of batches too. What is returned has the `queue`, the `priority`, `run_at` and the `state` of each.
    Raises AssertionError that shows the jobs of the task, the most similar first; InvalidInputError for arguments that
    do not fit the task, ConfigError for an app that is not in memory.

    >>> import asyncio
    >>> from headrace import App
    >>> from headrace.testing import assert_enqueued, in_memory
    >>> app = App()
    >>> @app.task
    ... async def send(to: str, text: str) -> None: ...
    >>> async def work() -> None:
    ...     async with app:
    ...         await send.enqueue("ann", text="hello")
    >>> with in_memory(app):
    ...     asyncio.run(work())
    ...     found = assert_enqueued(app, send, to="ann", count=1)
    ...     assert_enqueued(app, send, "ben")
    Traceback (most recent call last):
    AssertionError: no job send(to='ben') was enqueued; there are:
      send(to='ann', text='hello'): to is 'ann'
    """
    if not isinstance(task, Task):
        raise InvalidInputError("task", "must be a function registered with @app.task", task)
    wanted = task.definition.codec.named(args, kwargs, partial=True)
    jobs = tables_of(app).jobs()
    calls = [(job, _call_of(task, job)) for job in jobs if job.task == task.name]
    found = [job for job, given in calls if not _other(wanted, given)]
    if (found and count is None) or len(found) == count:
        return found
    raise AssertionError(_told(task.name, wanted, calls, (len(found), count)) + _others(task.name, jobs, bool(calls)))


def _call_of(task: Task[..., Any], job: JobView) -> dict[str, Any]:
    """Return the arguments of a job by name; those of a task that has changed meanwhile as they were given."""
    args, kwargs = job.args["args"], job.args["kwargs"]
    try:
        return task.definition.codec.named(args, kwargs)
    except InvalidInputError:
        return {**{str(place): value for place, value in enumerate(args)}, **kwargs}


def _other(wanted: Mapping[str, Any], given: Mapping[str, Any]) -> list[str]:
    """Return the names of the arguments that are not as wanted."""
    return [name for name, value in wanted.items() if name not in given or given[name] != value]


def _told(
    name: str, wanted: Mapping[str, Any], calls: list[tuple[JobView, dict[str, Any]]], counts: tuple[int, int | None]
) -> str:
    found, count = counts
    call = f"{name}({_shown(wanted)})"
    if found:
        what = f"{found} job{'s' * (found > 1)} {call} {'were' if found > 1 else 'was'} enqueued, and not {count}"
    else:
        what = f"no job {call} was enqueued" + (f", and not {count}" if count else "")
    if not calls:
        return what
    nearest = sorted(calls, key=lambda one: len(_other(wanted, one[1])))
    lines = [f"  {name}({_shown(given)}){_difference(wanted, given)}" for _, given in nearest[:_SHOWN]]
    more = [f"  … and {len(calls) - _SHOWN} more"] if len(calls) > _SHOWN else []
    return "\n".join([f"{what}; there are:", *lines, *more])


def _difference(wanted: Mapping[str, Any], given: Mapping[str, Any]) -> str:
    other = _other(wanted, given)
    parts = [f"{name} is {_value(given[name])}" if name in given else f"it has no {name}" for name in other]
    return f": {', '.join(parts)}" if parts else ""


def _others(name: str, jobs: list[JobView], any_of_it: bool) -> str:
    """Say what else there is, where there is nothing of the task."""
    if any_of_it:
        return ""
    counts = Counter(job.task for job in jobs)
    return "; there are: " + ", ".join(f"{count} {task}" for task, count in counts.items()) if counts else "; none is"


def _shown(arguments: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={_value(value)}" for name, value in arguments.items())


def _value(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"
