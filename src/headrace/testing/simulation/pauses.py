"""The world of pauses: tasks that wait for events, a callback service that resolves them, and all that interferes.

Workers, the wait of tasks, the callback service, its sweeper and its waking are the real ones; so is the memory store.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from random import Random
from typing import Any
from uuid import UUID

from headrace.engine.context import Context
from headrace.engine.events.waiting import HandleWaits
from headrace.engine.registry import Registry, RunsIn, TaskDef
from headrace.engine.retrying import with_retries
from headrace.model.backoff import Backoff
from headrace.model.errors import (
    ConflictError,
    HandleCancelledError,
    HandleExpiredError,
    NotFoundError,
    StoreUnavailableError,
)
from headrace.model.ids import uuid7
from headrace.model.job import JobSpec, NewJob
from headrace.model.resume_handle import NewHandle, hash_token
from headrace.ports.stores import Stores
from headrace.stores.memory import stores_over
from headrace.testing.simulation.clocks import ActorClock, StoreClock
from headrace.testing.simulation.executions import EXECUTIONS, Executions
from headrace.testing.simulation.faults import Fate, Network, Port, across
from headrace.testing.simulation.handlers import MAIN
from headrace.testing.simulation.hints import SimulatedNotifier
from headrace.testing.simulation.job_rules import JobRules
from headrace.testing.simulation.lease_rules import LeaseRules
from headrace.testing.simulation.loop import WORLD, Actor, VirtualLoop
from headrace.testing.simulation.machine import ProcessTable, simulated_machine
from headrace.testing.simulation.pause_lanes import CallbackService, Flows
from headrace.testing.simulation.pause_rules import PauseRules
from headrace.testing.simulation.pause_scenario import Deed, Sent, draw_pauses, token_of
from headrace.testing.simulation.processes import Processes
from headrace.testing.simulation.referee import Referee
from headrace.testing.simulation.report import Run
from headrace.testing.simulation.scenario import Mishap, Place
from headrace.testing.simulation.watch import WatchedState

#: Then the faults stop, and everything has to come to rest.
WORKING_SECONDS = 10.0
REST_SECONDS = 60.0
LOOK_SECONDS = 0.5
#: A task that waits is never given up for a store that is away.
SPEC = JobSpec("wait", MAIN, max_attempts=100, timeout=timedelta(seconds=60))
BACKOFF = Backoff.exponential(max_attempts=100, base=0.1, cap=0.5)
#: What clients and operators have to expect.
EXPECTED = (StoreUnavailableError, ConflictError, NotFoundError, HandleExpiredError)

Wait = Callable[[int, Context], Any]


class Waiters(Processes):
    """Workers that know one task: it waits for a handle and returns what became of it."""

    #: Set before the first is started.
    pauses: tuple[NewHandle, ...] = ()

    def _tasks(self, place: Place, actor: Actor, *, new: bool) -> Registry:
        clock = ActorClock(self._loop, actor, timedelta(seconds=place.wrong))
        assert self._stores.events is not None
        waits = HandleWaits(self._stores.events.handles, self._stores.signals, clock, self._stores.notifier)
        tasks = Registry()
        tasks.add(TaskDef("wait", self._handler(waits), RunsIn.LOOP, SPEC, BACKOFF))
        return tasks

    def _queues(self, place: Place) -> dict[str, int]:
        return {MAIN: place.slots}

    def _handler(self, waits: HandleWaits) -> Wait:
        async def wait(number: int, ctx: Context) -> Any:
            with EXECUTIONS.get().running(ctx):
                return await _ended(waits, self.pauses[number])

        return wait


async def _ended(waits: HandleWaits, pause: NewHandle) -> list[Any]:
    try:
        resumed = await waits.wait(pause)
    except HandleExpiredError:
        return ["expired"]
    except HandleCancelledError:
        return ["cancelled"]
    events, dead = [event.id for event in resumed.events], [one.event.id for one in resumed.dead]
    return ["resolved", sorted(events), sorted(dead), resumed.payload]


class PauseWorld:
    """Everything of one run."""

    def __init__(self, seed: int) -> None:
        self.scenario = draw_pauses(seed)
        workers = self.scenario.workers
        chance = partial(_chance, seed)
        self.loop = VirtualLoop(None if workers.fifo else chance("order"))
        self.table = ProcessTable(self.loop)
        self.state = WatchedState(StoreClock(self.loop))
        self.referee = Referee(self.loop, self.state)
        self.network = self.referee.network = Network(self.loop, chance("network"), self.referee)
        self.network.weather = workers.weather
        self.notifier = SimulatedNotifier(self.loop, chance("hints"))
        self.notifier.loss = workers.weather.lost_hints
        real = stores_over(self.state, self.notifier)
        self.stores = _across(self.network, real)
        assert self.stores.events is not None
        assert real.events is not None
        self.handles = self.stores.events.handles
        self.executions, self.flows = Executions(self.referee), Flows(chance("flows"))
        self.processes = Waiters(
            workers, self.loop, stores=self.stores, table=self.table, referee=self.referee,
            executions=self.executions, network=self.network,
        )  # fmt: skip
        self.processes.pauses = self.scenario.pauses
        self.service = CallbackService(
            self.loop, self.handles, network=self.network, referee=self.referee, chance=chance("service"),
            flows=self.flows, places=self.scenario.callbacks,
        )  # fmt: skip
        self.rules = PauseRules(self.referee, real.events.handles)
        self.service.check = self.rules.check_taken
        self.referee.rules = [JobRules(self.referee), self.executions, LeaseRules(self.referee), self.rules]
        self.loop.set_exception_handler(self._on_error)
        self.client = Actor("client")
        self._jobs: dict[int, list[UUID]] = {}
        self._until = 0.0

    def _on_error(self, _loop: Any, context: dict[str, Any]) -> None:
        self.alarm(f"{context['message']}: {context.get('exception')!r}")

    def alarm(self, what: str) -> None:
        """Something went wrong that nobody expected."""
        self.referee.breach("no surprises", what)

    def play(self) -> None:
        """Run to the end or to the first breach."""
        scenario = self.scenario
        for number in range(len(scenario.workers.places)):
            self.processes.start(number)
        for number in range(scenario.callbacks):
            self.service.start(number)
        for deed in scenario.deeds:
            self._at(deed.at, self._begin, deed)
        for sent in scenario.sent:
            for _ in range(sent.copies):
                self._at(sent.at, self._send, sent)
        for mishap in scenario.workers.mishaps:
            self._at(mishap.at, self._happen, mishap)
        for mishap in scenario.mishaps:
            self._at(mishap.at, self.service.happen, mishap)
        self._at(WORKING_SECONDS, self._heal)
        self.loop.run_forever()

    def _at(self, when: float, what: Callable[..., None], *args: Any) -> None:
        self.loop.call_at_world_time(when, what, *args, context=WORLD.context())

    def _send(self, sent: Sent) -> None:
        self.service.send(f"{sent.noted.event.correlation_id} {sent.lane}", sent.noted)

    def _begin(self, deed: Deed) -> None:
        self.loop.create_task(self._do(deed), context=self.client.context())

    async def _do(self, deed: Deed) -> None:
        pause = self.scenario.pauses[deed.pause]
        self.referee.note(self.client, deed.kind, pause.correlation_id, deed.payload)
        with suppress(*EXPECTED):
            match deed.kind:
                case "start":
                    await self._start(deed.pause)
                case "cancel":
                    await with_retries(lambda _: self.handles.cancel_handle(pause.correlation_id))
                case "token":
                    token = hash_token(token_of(deed.pause))
                    await with_retries(lambda _: self.handles.resolve_by_token(token, deed.payload))
                case _:
                    for job_id in self._jobs.get(deed.pause, []):
                        await with_retries(lambda _, job_id=job_id: self.stores.control.cancel_job(job_id))  # type: ignore[misc]

    async def _start(self, number: int) -> None:
        job = NewJob(SPEC, json.dumps({"args": [number], "kwargs": {}}), id=uuid7())
        self.rules.waits[job.id] = self.scenario.pauses[number].correlation_id
        self._jobs.setdefault(number, []).append(job.id)
        await with_retries(lambda _: self.stores.jobs.insert_jobs([job]))
        self.notifier.hint(f"queue:{MAIN}")

    def _happen(self, mishap: Mishap) -> None:
        match mishap.kind:
            case "crash":
                self.processes.crash(mishap.place)
                self.processes.start_later(mishap.place, mishap.seconds)
            case "freeze":
                self.processes.freeze(mishap.place, mishap.seconds)
            case _:
                self.processes.cut_off(mishap.place, mishap.seconds)

    def _heal(self) -> None:
        """End the faults."""
        self.referee.note("the faults are over")
        self.network.calm_down()
        self.notifier.loss, self.processes.healed = 0.0, True
        self._until = self.loop.now + REST_SECONDS
        for number, process in enumerate(self.processes.current):
            if process is not None:
                self.processes.thaw(process)
            self.processes.start(number)
        self.service.heal()
        self._at(self.loop.now + LOOK_SECONDS, self._look)

    def _look(self) -> None:
        unrest = self._unrest()
        if not unrest:
            self.referee.thorough()
            self.loop.stop()
        elif self.loop.now > self._until:
            what = f"{REST_SECONDS:g} s after the last fault {unrest}"
            self.referee.breach("nothing is parked for ever", what)
        else:
            self._at(self.loop.now + LOOK_SECONDS, self._look)

    def _unrest(self) -> str:
        """Return what is not at rest, or nothing."""
        if self.state.jobs:
            jobs = [f"{job.id} ({job.state}, {self.rules.waits[job.id]})" for job in self.state.jobs.values()]
            return f"{len(jobs)} jobs are not final: {', '.join(jobs[:3])}"
        if not self.service.quiet:
            return "something lies on the bus"
        for correlation_id, account in self.rules.accounts.items():
            if account.view is not None and not account.view.state.final:
                return f"handle {correlation_id} waits"
        late = [name for name in self._targets() if not self.flows.woken.get(name)]
        return f"nobody woke {late}" if late else ""

    def _targets(self) -> list[str]:
        made = [account.new for account in self.rules.accounts.values() if account.new is not None]
        return [new.target.partition(":")[2] for new in made if new.target]

    def counts(self) -> dict[str, int]:
        """Return what happened how often."""
        fates = {f"calls: {fate.value}": self.network.fates.get(fate, 0) for fate in Fate}
        accounts = self.rules.accounts.values()
        ends = Counter(f"handles: {one.view.state.value}" for one in accounts if one.view is not None)
        jobs = Counter(f"jobs: {row.state.value}" for row in self.state.finished.values())
        return {
            **fates, **ends, **jobs, "early": self.rules.early, "woken": sum(self.flows.woken.values()),
            "by token": sum(one.view is not None and one.view.payload is not None for one in accounts),
            "dead": sum(len(one.counting()[1]) for one in accounts),
            "processes": len(self.processes.actors) + len(self.service.actors),
            "crashed attempts": sum(row.job.crashes for row in self.state.finished.values()),
        }  # fmt: skip


def _across(network: Network, stores: Stores) -> Stores:
    events: Any = stores.events
    ports: dict[str, Any] = {
        "signals": Port(stores.signals, network), "events": replace(events, handles=Port(events.handles, network))
    }  # fmt: skip
    return replace(across(network, stores), **ports)


def _chance(seed: int, purpose: str) -> Random:
    return Random(f"pauses {seed} {purpose}")  # noqa: S311 - a simulation, no secrets


def run_pauses(seed: int, *, traced: bool = False) -> Run:
    """Run one seed of the world of pauses and say what came of it.

    >>> run_pauses(1).ok
    True
    """
    world = PauseWorld(seed)
    with simulated_machine(seed, world.loop, world.table, world.alarm):
        try:
            world.play()
        finally:
            world.referee.over = True
            world.loop.dispose([WORLD, world.client, *world.service.actors, *world.processes.actors])
            WORLD.tasks.clear()
    referee = world.referee
    lines = referee.trace.lines() if traced or referee.violation is not None else ()
    return Run(seed, referee.steps, world.loop.now, world.counts(), referee.violation, lines, "pauses")
