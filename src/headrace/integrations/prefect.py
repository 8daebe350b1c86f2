"""Headrace within flows of Prefect: a flow run that waits for events suspends itself, and is resumed when they came.

A suspended flow run has no process. When its handle ends, a Headrace worker with `[events] prefect_api_url` resumes it,
and Prefect begins the code of the flow at its first line again. Tasks that were done before are not run again if their
results are persisted (`persist_result=True`) where the next process finds them, and neither their source nor their
arguments have changed, by which Prefect knows them again. Everything else is done again.

    @task
    async def submit(session: str, batches: list[int], command: str) -> None:
        async with app:
            for index, size in enumerate(batches):
                await emit_once(
                    app, f"batch-{index}", "Genesis.Session.DetailBatchGenerationRequested", {"count": size},
                    aggregate_id=session, correlation_id=command,
                )

    @flow(persist_result=True)
    async def genesis_detail_batch_flow(session: str, count: int, command: str) -> int:
        batches = decompose(count)
        await submit(session, batches, command)
        resumed = await suspend_for_events(
            app, command, "Genesis.Session.DetailBatchCreated", count=len(batches), timeout="1h"
        )
        return sum(len(event.payload["items"]) for event in resumed.events)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NotRequired, Required, TypedDict, Unpack
from uuid import UUID

from headrace.engine.retrying import with_retries
from headrace.model.durations import parse_duration
from headrace.model.emitting import EventOptions, check_options, stable_id
from headrace.model.errors import ConfigError
from headrace.model.event import Event
from headrace.outbound.prefect import PAUSE_PREFIX

if TYPE_CHECKING:
    from headrace.app import App
    from headrace.resume_handles import Resumed

#: Prefect fails a run that stays suspended this long after its handle's time, should nobody resume it.
GRACE = timedelta(days=1)


class WaitOptions(TypedDict):
    """Options of `suspend_for_events`."""

    #: How long to wait, from the first time on.
    timeout: Required[float | str | timedelta]
    #: How many events; default 1.
    count: NotRequired[int]
    #: Types of requests that count as one event each when they become dead letters; they are in `Resumed.dead`.
    request_types: NotRequired[Sequence[str]]
    #: The agents whose dead letters count; default: those of any.
    agents: NotRequired[Sequence[str]]


async def suspend_for_events(app: App, correlation_id: str, *types: str, **options: Unpack[WaitOptions]) -> Resumed:
    """Within a flow: return what events of `types` came with a correlation id, suspended until enough have come.

    They may have come before; then nothing is suspended. A flow run that anybody else resumes suspends itself again.
    The correlation id must be the same each time the code runs, and belong to this flow run alone. Raises
    HandleExpiredError after the timeout, HandleCancelledError, ConflictError when the correlation id waits for
    something else, ConfigError in anything but a flow run of a deployment that is not within another.
    """
    wait = _Wait.here(correlation_id, types, options)
    from prefect.flow_runs import asuspend_flow_run

    while (resumed := await wait.look(app)) is None:
        await asuspend_flow_run(timeout=wait.patience, key=wait.next_key())
    return resumed


def suspend_for_events_sync(app: App, correlation_id: str, *types: str, **options: Unpack[WaitOptions]) -> Resumed:
    """Do what `suspend_for_events` does within a flow that is no coroutine."""
    wait = _Wait.here(correlation_id, types, options)
    from prefect.flow_runs import suspend_flow_run

    while (resumed := app.sync(wait.look(app))) is None:
        suspend_flow_run(timeout=wait.patience, key=wait.next_key())
    return resumed


async def emit_once(app: App, name: str, type: str, payload: Any = None, **options: Unpack[EventOptions]) -> Event:
    """Emit an event as `App.emit` does, within a flow or a task of one, and once per flow run and `name`.

    A task may run again, say because its process died before Prefect had noted its end: the event is then the same.
    """
    check_options(options)
    run = _context().flow_run.id
    async with app:
        made = app.emission.make(type, payload, options, event_id=stable_id(run, name))
        outbox = app.event_stores.outbox
        await with_retries(lambda _: outbox.insert_events([made]))
    assert made.event is not None
    return made.event


@dataclass(slots=True)
class _Wait:
    """What this flow run waits for, and how it suspends itself."""

    run: UUID
    correlation_id: str
    types: Sequence[str]
    options: WaitOptions
    #: How often it was suspended for this: no key of a suspension works twice.
    suspensions: int

    @classmethod
    def here(cls, correlation_id: str, types: Sequence[str], options: WaitOptions) -> _Wait:
        """Return that of the flow run in whose code this is called. Raises ConfigError where it cannot suspend."""
        run = _suspendable()
        behind = sum(key.startswith(_key(correlation_id)) for key in run.empirical_policy.pause_keys or ())
        return cls(run.id, correlation_id, types, options, behind)

    async def look(self, app: App) -> Resumed | None:
        """Return what has come; None as long as it is waited for."""
        async with app:
            target = f"prefect:{self.run}"
            handle = await app.handles.register(self.correlation_id, *self.types, target=target, **self.options)
            if not handle.state.final:
                return None
            if handle.view.wake_due:
                # Nobody need look for this run any more.
                store = app.event_stores.handles
                await with_retries(lambda _: store.mark_woken(self.correlation_id))
            return await handle.outcome()

    @property
    def patience(self) -> int:
        """For how long it lets Prefect wait, seconds."""
        return int((parse_duration(self.options["timeout"], field="timeout") + GRACE).total_seconds())

    def next_key(self) -> str:
        """Return the key of the next suspension."""
        self.suspensions += 1
        return f"{_key(self.correlation_id)}{self.suspensions}"


def _key(correlation_id: str) -> str:
    """Return what keys of suspensions begin with, by which the waker knows that they are ours."""
    return f"{PAUSE_PREFIX}{correlation_id}:"


def _context() -> Any:
    """Return the context of the flow run that this is called in. Raises ConfigError."""
    try:
        from prefect.context import FlowRunContext
    except ImportError:
        raise ConfigError("headrace.integrations.prefect needs a package more: pip install 'prefect>=3.8'") from None
    context = FlowRunContext.get()
    if context is None or context.flow_run is None:
        raise ConfigError("headrace.integrations.prefect works within a flow run of Prefect only: call it in a flow")
    return context


def _suspendable() -> Any:
    """Return the flow run that this is called in, which can suspend itself. Raises ConfigError."""
    run = _context().flow_run
    from prefect.context import TaskRunContext

    if TaskRunContext.get() is not None:
        raise ConfigError("a task of Prefect cannot wait for events: wait in the flow that calls it")
    if run.parent_task_run_id is not None:
        raise ConfigError("a flow run within another cannot be suspended: wait for events in the outer flow")
    if run.deployment_id is None:
        rule = "only flow runs of a deployment can be suspended, which somebody starts again"
        raise ConfigError(f"{rule}: serve the flow (flow.serve()) and run its deployment")
    return run
