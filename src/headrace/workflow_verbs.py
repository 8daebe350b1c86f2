"""What the façade does with workflows: declare, start, signal, wait."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, overload
from uuid import UUID

from headrace.engine.context import CURRENT
from headrace.engine.registry import TaskDef
from headrace.model.durations import parse_duration
from headrace.model.errors import ConfigError, HeadraceError, InvalidInputError, SignalTimeoutError
from headrace.model.ids import parse_id
from headrace.model.job import JobSpec
from headrace.model.names import check_key
from headrace.model.parking import ParkRequested

if TYPE_CHECKING:
    from headrace.canvas import Canvas
    from headrace.canvas.workflow import Workflow
    from headrace.engine.workflows.service import RunService, StartOptions
    from headrace.model.graph.nodes import Graph
    from headrace.model.priority import Priority
    from headrace.runs import Run

LOG = logging.getLogger("headrace.workflows")

#: What the workflow that follows a failure is told.
REPORT = ("workflow", "run_id", "error")

# What only workflows need is imported where it is used: who has none does not wait for it.


class WorkflowVerbs:
    """The part of `App` that is for workflows."""

    _workflows: dict[str, Workflow]

    @overload
    def workflow(self, function: Callable[..., Canvas], /) -> Workflow: ...
    @overload
    def workflow(
        self, name: str, canvas: Canvas | Graph | Mapping[str, Any], /, *, tags: Sequence[str] = (),
        on_failure: str | None = None, output: Any = ...,
    ) -> Workflow: ...  # fmt: skip
    @overload
    def workflow(
        self, name: str, /, *, tags: Sequence[str] = (), on_failure: str | None = None, output: Any = ...
    ) -> Callable[[Callable[..., Canvas]], Workflow]: ...
    @overload
    def workflow(
        self, *, name: str | None = None, tags: Sequence[str] = (), on_failure: str | None = None, output: Any = ...
    ) -> Callable[[Callable[..., Canvas]], Workflow]: ...
    def workflow(self, function: Any = None, canvas: Any = ..., /, **options: Any) -> Any:  # type: ignore[misc]
        """Declare a workflow: a function that returns a canvas, decorated, or a name and a canvas, or its JSON form.

        The function is called once, now, with placeholders for what a run is started with; `@app.workflow("review")`
        names it, as `name=` does. `tags`: words that influence how runs are scheduled, such as "schedule:node_level".
        `on_failure`: the name of the workflow that is started with {"workflow", "run_id", "error"} when a run fails: as
        the arguments of these names, or as its one argument or input. `output`: what a run gives; default: that of the
        last part. The JSON form has these within it. Raises InvalidInputError, ConfigError for a name in use.

        >>> from headrace import App, chain
        >>> app = App("memory://")
        >>> @app.task
        ... async def fetch(url: str) -> str: ...
        >>> @app.task
        ... async def summarise(text: str) -> str: ...
        >>> @app.workflow
        ... def digest(url: str):
        ...     return chain(fetch.s(url), summarise.s())
        >>> digest.name
        'digest'
        """
        from headrace.canvas.workflow import define_workflow, workflow_of

        if canvas is not ...:
            return self._declare(workflow_of(function, canvas, **options))
        if isinstance(function, str):
            if options.get("name") is not None:
                raise InvalidInputError("name", f"must be given once, and is {function!r} already", options["name"])
            options["name"], function = function, None
        if function is not None:
            return self._declare(define_workflow(function, **options))
        return lambda decorated: self._declare(define_workflow(decorated, **options))

    def _declare(self, made: Workflow) -> Workflow:
        known = self._workflows.setdefault(made.name, made)
        if known.graph != made.graph:
            raise ConfigError(f"there are two workflows {made.name!r}; give one of them another name=")
        return made

    @property
    def declared_workflows(self) -> list[Workflow]:
        """The workflows that this process has declared; others may be stored."""
        return list(self._workflows.values())

    @property
    def run_service(self: Any) -> RunService:
        """What is done to runs from outside."""
        from headrace.wiring.workflows import make_run_service

        return make_run_service(self)

    async def start(  # noqa: PLR0913 - keyword-only
        self: Any, workflow: Workflow | str, /, *given: Any, key: str | None = None,
        user_id: str | None = None, correlation_id: str | None = None, metadata: Mapping[str, Any] | None = None,
        webhook: str | None = None, priority: Priority | str | int | None = None, **inputs: Any,
    ) -> Run:  # fmt: skip
        """Start a run of a workflow and return it once it is stored.

        `workflow`: one that this app declares, or the name of one that is stored. Its input is what its function takes,
        or, of one without a function, the one value that is given. `key`: idempotency key, unique per workflow as long
        as the run is kept, for the same input and options. `user_id` and `correlation_id`, texts, and `metadata`, a
        mapping, reach every node. `webhook`: a URL that is sent a signed message, `run.ended`, at its end; needs
        `[webhooks] secrets`. `priority`: a class name or 0–9 for the jobs of its tasks whose nodes name none. Raises
        NotFoundError, WorkflowNotActiveError, InvalidInputError, ConflictError.
        """
        from headrace.canvas.workflow import input_of_any
        from headrace.runs import Run, start_options

        declared = self._workflows.get(workflow) if isinstance(workflow, str) else workflow
        name = workflow if isinstance(workflow, str) else workflow.name
        value = input_of_any(name, *given, **inputs) if declared is None else declared.input_of(*given, **inputs)
        options = start_options(key, user_id, correlation_id, metadata, webhook, priority)
        await self.check_webhook(webhook)
        graph = None if declared is None else declared.graph
        return Run(self, await self.run_service.start(name, graph, value, options))

    async def start_json(self: Any, name: str, given: Any, options: StartOptions) -> Run:
        """Start a run of a workflow that this app declares, or that is stored, with JSON; for commands and services.

        `given`: the arguments of its function, by name or in their order, or the one value. Raises as `start` does.
        """
        from headrace.runs import Run

        await self.check_webhook(options.webhook)
        declared = self._workflows.get(name)
        graph = None if declared is None else declared.graph
        value = given if declared is None else declared.input_of_json(given)
        return Run(self, await self.run_service.start(name, graph, value, options))

    async def start_by_name(self: Any, name: str, report: dict[str, Any], key: str) -> UUID:
        """Start the workflow that follows the failure of a run, once per key; for workers."""
        from headrace.engine.workflows.service import StartOptions

        declared = self._workflows.get(name)
        graph = None if declared is None else declared.graph
        value = report if declared is None else declared.input_of_report(report)
        started: UUID = await self.run_service.start(name, graph, value, StartOptions(key))
        return started

    async def warn_of_followers(self: Any) -> None:
        """Say which workflows name, as what follows their failure, one that could not start; for workers."""
        for made in self._workflows.values():
            name = made.graph.on_failure
            if name is not None and (why := await self._follower_fault(name)) is not None:
                LOG.warning(
                    "workflow %r has on_failure=%r, and when a run fails nothing follows: %s", made.name, name, why
                )

    async def _follower_fault(self: Any, name: str) -> str | None:
        """Return why a workflow could not start with the report of a failed run; None if it could."""
        declared = self._workflows.get(name)
        if declared is not None:
            try:
                declared.input_of_report(dict.fromkeys(REPORT))
            except InvalidInputError as error:
                return f"{error.field} {error.rule}; it needs the arguments {', '.join(REPORT)}, or one for all of them"
            return None
        try:
            stored = await self.runtime.stores.workflows.get_workflow(name)
        except HeadraceError:
            return None  # the store is away: nobody knows
        known = ", ".join(sorted(self._workflows))
        return None if stored else f"no workflow of that name is declared here or stored; this app has: {known}"

    async def find_run_by_key(self: Any, workflow: str, key: str) -> Run | None:
        """Return the run of a workflow that was started under a key, if there is one, while it is kept."""
        from headrace.runs import Run

        found = await self.run_service.find(workflow, check_key("key", key))
        return None if found is None else Run(self, found)

    def find_run(self: Any, run_id: UUID | str) -> Run:
        """Return the handle of a run. Raises InvalidInputError for what is no id."""
        from headrace.runs import Run

        return Run(self, parse_id("run", run_id) if isinstance(run_id, str) else run_id)

    async def signal(self: Any, key: str, payload: Any = None) -> bool:
        """Send a signal: what waits for `key` runs on, now or when it comes to wait.

        A signal comes once per key; False says that it had come before, and that its payload stands.
        """
        sent: bool = await self.run_service.signal(key, payload)
        return sent

    async def wait_for(self: Any, key: str, timeout: float | str | timedelta | None = None) -> Any:
        """Within a task: return the payload of a signal; until it comes the job is parked and takes no slot.

        The handler then runs again from its first line: `ctx.step` and model calls return what they stored. `timeout`
        counts from the first call. Raises SignalTimeoutError, ConfigError outside of a task.
        """
        from headrace.engine.workflows.waiting import Waits

        context = CURRENT.get()
        if context is None:
            raise ConfigError("app.wait_for works within a task: elsewhere there is no job that could wait")
        check_key("signal key", key)
        limit = None if timeout is None else parse_duration(timeout, field="timeout")
        means = self.runtime.means
        waited = await Waits(means.stores.signals, means.clock, context.steps.save).wait(f"signal {key}", key, limit)
        if waited.park is not None:
            raise ParkRequested(waited.park.wait, f"signal {key}", key=key)
        if waited.timed_out:
            raise SignalTimeoutError(f"no signal {key!r} came within {timeout}")
        return json.loads(waited.payload or "null")

    def node_spec_of(self: Any, task: TaskDef) -> JobSpec:
        """Return how jobs of a task are stored that are nodes of runs: `[scheduler.distributed]` bounds them."""
        spec: JobSpec = self.spec_of(task)
        distributed = self.settings.scheduler.distributed
        retries = 0 if spec.at_most_once else distributed.max_retries
        return replace(
            spec,
            max_attempts=task.spec.max_attempts or 1 + retries,
            timeout=task.spec.timeout or distributed.default_timeout,
        )
