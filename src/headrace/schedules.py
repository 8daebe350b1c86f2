"""From `@app.cron` and `app.schedule` to what a worker declares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headrace.model.errors import InvalidInputError
from headrace.model.names import check_name
from headrace.model.schedule import CatchUp, CronRule, Declaration
from headrace.tasks import Task, TaskCall


@dataclass(frozen=True, slots=True)
class ScheduleDef:
    """A schedule in the code of an app: its rule, and the call it makes."""

    name: str
    rule: CronRule
    call: TaskCall[Any, Any]
    args: Sequence[Any]
    kwargs: Mapping[str, Any]

    def is_again(self, other: ScheduleDef) -> bool:
        """Whether the other one is the same call of the same function: its module was read twice."""
        return self._facts() == other._facts()

    def _facts(self) -> tuple[object, ...]:
        definition = self.call.task.definition
        # As text: values of a module that was read twice are of other classes.
        return definition.target, self.rule, self.call.changes, repr((self.args, self.kwargs))

    def declaration(self) -> Declaration:
        """Return what a worker declares. Raises InvalidInputError for arguments that do not fit."""
        definition = self.call.task.definition
        text = definition.codec.encode(self.args, self.kwargs, field=f"arguments of schedule {self.name!r}")
        return Declaration(self.name, self.rule, self.call.spec(), text)


def define_schedule(  # noqa: PLR0913 - what `App.schedule` takes, keyword-only
    task: Any,
    cron: str,
    *,
    name: str | None,
    tz: str,
    catch_up: CatchUp | str,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
) -> ScheduleDef:
    """Return a checked schedule. Raises InvalidInputError naming field, rule and value."""
    # Reading expressions is for those who have some.
    from headrace.engine.cron import check_rule

    call = TaskCall(task) if isinstance(task, Task) else task
    if not isinstance(call, TaskCall):
        raise InvalidInputError("task", "must be a function registered with @app.task, or its .options(…)", task)
    for option in ("key", "run_at", "connection"):
        if getattr(call, option) is not None:
            raise InvalidInputError(option, "is for one job, and a schedule makes many", getattr(call, option))
    rule = check_rule(cron, tz=tz, catch_up=catch_up)
    if not isinstance(args, Sequence) or isinstance(args, str | bytes):
        raise InvalidInputError("args", "must be a list of positional arguments", args)
    if kwargs is not None and not (isinstance(kwargs, Mapping) and all(isinstance(key, str) for key in kwargs)):
        raise InvalidInputError("kwargs", "must be keyword arguments by name", kwargs)
    schedule = ScheduleDef(check_name("name", name or call.task.name), rule, call, tuple(args), dict(kwargs or {}))
    _check_arguments(schedule)
    return schedule


def _check_arguments(schedule: ScheduleDef) -> None:
    """Look at the arguments now, unless types they are annotated with are not defined yet: then a worker does."""
    try:
        schedule.call.task.definition.codec.encode(
            schedule.args, schedule.kwargs, field=f"arguments of schedule {schedule.name!r}"
        )
    except InvalidInputError as error:
        if error.field != "task":
            raise
