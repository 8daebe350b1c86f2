"""Schedule triggers: each rule of an active flow is a schedule of the store, whose fires start runs.

Every worker of flows looks at the stored flows twice a minute and says which schedules are wanted, so that a flow that
is imported, changed or switched off is followed within half a minute by workers that run already.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from headrace import App, Backoff, Context, HeadraceError, InvalidInputError, WorkflowNotActiveError
from headrace.apps.flows.form import Flow
from headrace.apps.flows.triggers import active_flow, active_flows, start_of, triggers_of
from headrace.model.schedule import Declaration, ScheduleView
from headrace.nodes.schedule import ScheduleType, moment_fields
from headrace.schedules import define_schedule

if TYPE_CHECKING:
    from headrace.tasks import Task

LOG = logging.getLogger("headrace.flows")

FIRE_TASK = "flows.fire"
#: Between two looks at the stored flows.
LOOK_SECONDS = 30.0


def register(app: App) -> None:
    """Register the task of fires with an app."""

    @app.task(name=FIRE_TASK, queue="flows", timeout="1m", retry=Backoff.exponential(max_attempts=8))
    async def flows_fire(ctx: Context, schedule: str, workflow: str, node: str) -> dict[str, Any]:
        """Start the run of a fire time, once."""
        assert ctx.scheduled_at is not None, "only schedules call it"
        return await fire(app, Fired(schedule, workflow, node, ctx.scheduled_at))


@dataclass(frozen=True, slots=True)
class Fired:
    """One fire of a schedule: the trigger of which flow, and for which time."""

    schedule: str
    workflow: str
    node: str
    at: datetime

    @property
    def key(self) -> str:
        """The key of its run."""
        return f"{self.schedule}@{self.at.isoformat(timespec='seconds')}"


async def fire(app: App, fired: Fired) -> dict[str, Any]:
    """Start the run of a fire time and return its id; none where the flow has been switched off or changed since."""
    stored = await app.runtime.stores.workflows.get_workflow(fired.workflow)
    flow = None if stored is None else active_flow(stored)
    if flow is None or fired.node not in {node.name for node, _ in triggers_of(flow)}:
        return {"run": None, "why": "the flow was switched off, or has no such trigger any more"}
    item = {"json": moment_fields(fired.at.astimezone(ZoneInfo(flow.timezone)))}
    try:
        run = await app.start(fired.workflow, start_of(app, fired.node, item, "trigger"), key=fired.key)
    except WorkflowNotActiveError as error:
        return {"run": None, "why": str(error)}
    return {"run": str(run.id)}


def declarations_of(app: App, workflow: str, flow: Flow) -> list[Declaration]:
    """Return the schedules of a flow, numbered in the order of its triggers. Raises InvalidInputError."""
    task: Task[..., Any] = app.find_task(FIRE_TASK)
    made: list[Declaration] = []
    for node, kind in triggers_of(flow):
        for cron in kind.crons(node.parameters) if isinstance(kind, ScheduleType) else ():
            name = f"{workflow}.{len(made) + 1}"
            args = [name, workflow, node.name]
            one = define_schedule(task, cron, name=name, tz=flow.timezone, catch_up="skip", args=args)
            made.append(one.declaration())
    return made


@dataclass
class Keeper:
    """Keeps the schedules of the store as the active flows want them."""

    app: App
    #: What was said: once is enough.
    _told: set[str] = field(default_factory=set)

    async def look(self) -> None:
        """Declare what is wanted and forget what is not, once."""
        store = self.app.runtime.stores.schedules
        # The schedules first: those that are known were wanted by flows that are no newer than the ones read next.
        known = {} if store is None else {view.name: view for view in await store.list_schedules() if _is_ours(view)}
        wanted = self._wanted(await active_flows(self.app))
        if store is None:
            if wanted:
                self._tell("this store keeps no schedules: flows with schedule triggers start no runs")
            return
        same = {name for name, made in wanted.items() if name in known and _is_same(known[name].declaration, made)}
        if len(same) < len(wanted):
            await store.declare_schedules([made for name, made in wanted.items() if name not in same])
        if same:
            await store.declare_schedules([wanted[name] for name in sorted(same)], renew=True)
        for name in known.keys() - wanted.keys():
            with suppress(HeadraceError):  # another worker has
                await store.forget_schedule(name)

    def _wanted(self, flows: Mapping[str, Flow]) -> dict[str, Declaration]:
        found: dict[str, Declaration] = {}
        for workflow, flow in flows.items():
            try:
                found |= {made.name: made for made in declarations_of(self.app, workflow, flow)}
            except InvalidInputError as error:
                self._tell(f"flow {flow.name!r} has a schedule that cannot be kept: {error}")
        return found

    def _tell(self, words: str) -> None:
        if words not in self._told:
            self._told.add(words)
            LOG.error("%s", words)

    async def keep(self) -> None:
        """Look again and again."""
        while True:
            try:
                await self.look()
            except HeadraceError as error:
                LOG.warning("schedules of flows are not looked at: %s", error)
            except Exception:  # whatever it is, it must not end the looking
                LOG.exception("schedules of flows are not looked at")
            await asyncio.sleep(LOOK_SECONDS)


def _is_ours(view: ScheduleView) -> bool:
    return view.declaration.spec.task == FIRE_TASK


def _is_same(known: Declaration, made: Declaration) -> bool:
    """Whether two fire alike: how jobs are stored may differ between versions of workers, who must not take turns."""
    return known.rule.text == made.rule.text and known.args == made.args


@asynccontextmanager
async def schedules_kept(app: App) -> AsyncIterator[None]:
    """Keep schedules while a worker works: the lifespan of the app of flows."""
    keeping = asyncio.create_task(Keeper(app).keep(), name="headrace-flow-schedules")
    try:
        yield
    finally:
        keeping.cancel()
        with suppress(asyncio.CancelledError):
            await keeping
