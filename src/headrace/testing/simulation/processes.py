"""Worker processes of the simulated world: the real worker, in processes that start, crash, freeze and stop."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from headrace.engine.attempt import compose
from headrace.engine.attempts import AttemptFactory
from headrace.engine.breaker_reports import BreakerReports
from headrace.engine.loops.resizer import ElasticOptions
from headrace.engine.middleware.breaker import BreakerMiddleware
from headrace.engine.middleware.park import park
from headrace.engine.middleware.retry import RetryMiddleware
from headrace.engine.middleware.time_limit import limit_time
from headrace.engine.middleware.usage import meter_usage
from headrace.engine.registry import Registry, RunsIn
from headrace.engine.shift import ShiftOptions
from headrace.engine.worker import DutyOptions, Worker
from headrace.executors.inline import InlineExecutor
from headrace.model.errors import StoreUnavailableError
from headrace.model.stats import Retention
from headrace.ports.stores import Stores
from headrace.testing.simulation.clocks import ActorClock
from headrace.testing.simulation.executions import EXECUTIONS, Executions
from headrace.testing.simulation.faults import Network
from headrace.testing.simulation.handlers import GATED, MAIN, SIDE, LoneChild, registry
from headrace.testing.simulation.loop import WORLD, Actor, VirtualLoop
from headrace.testing.simulation.machine import ProcessTable
from headrace.testing.simulation.referee import Referee
from headrace.testing.simulation.scenario import LEASE_SECONDS, Place, Scenario

GRACE = timedelta(seconds=0.7)
#: A supervisor starts a worker again after this long.
RESTART_SECONDS = 0.5


@dataclass(slots=True)
class Process:
    """One start of a worker in a process of its own."""

    place: Place
    actor: Actor
    worker: Worker
    stopping: bool = False

    @property
    def working(self) -> bool:
        """Whether it runs, and is not about to stop."""
        return self.actor.present and not self.stopping


class Processes:
    """Starts and ends the workers of all places; at most one at a time in each."""

    def __init__(  # noqa: PLR0913 - collaborators arrive by constructor
        self, scenario: Scenario, loop: VirtualLoop, *, stores: Stores, table: ProcessTable, referee: Referee,
        executions: Executions, network: Network,
    ) -> None:  # fmt: skip
        self._scenario, self._loop, self._stores, self._table = scenario, loop, stores, table
        self._referee, self._executions, self._network = referee, executions, network
        self.actors: list[Actor] = []
        self.current: list[Process | None] = [None] * len(scenario.places)
        #: Set once the faults are over: children of suspects live on.
        self.healed = False

    def start(self, number: int) -> None:
        """Start a worker at a place, unless one is there; once the faults are over it has the newest code."""
        if self.current[number] is not None:
            return
        place = self._scenario.places[number]
        actor = self.add_actor(f"w{number}.{len(self.actors)}", place.host, rate=place.rate, offset=place.offset)
        process = Process(place, actor, self._worker(place, actor, new=self.healed))
        self.current[number] = process
        context = actor.context()
        context.run(EXECUTIONS.set, self._executions)
        self._loop.create_task(self._work(process, number), context=context)

    def add_actor(self, name: str, host: str, *, rate: float = 1.0, offset: float = 0.0) -> Actor:
        """Start a process."""
        actor = Actor(name, rate=rate, offset=offset)
        self.actors.append(actor)
        self._table.add(name, host)
        self._referee.note(actor, "starts on", host)
        return actor

    async def _work(self, process: Process, number: int) -> None:
        try:
            await process.worker.start()
        except StoreUnavailableError:
            # A command that cannot start ends; its supervisor starts it again.
            self.crash(number)
            self.start_later(number, RESTART_SECONDS)

    def start_later(self, number: int, seconds: float) -> None:
        """Start a worker at a place some time from now, as a supervisor does."""
        self._loop.call_at_world_time(self._loop.now + seconds, self.start, number, context=WORLD.context())

    def _worker(self, place: Place, actor: Actor, *, new: bool) -> Worker:
        clock = ActorClock(self._loop, actor, timedelta(seconds=place.wrong))
        child = LoneChild(self._child_crashes)
        factory = AttemptFactory(
            registry=self._tasks(place, actor, new=new),
            jobs=self._stores.jobs, executors={RunsIn.LOOP: InlineExecutor()},
            alone=child, proceed=compose([RetryMiddleware(), self._breakers(), park, limit_time, meter_usage]),
            clock=clock, max_processing_time=timedelta(seconds=30),
        )  # fmt: skip
        options = ShiftOptions(
            queues=self._queues(place), batch_size=place.batch_size,
            poll_interval=timedelta(seconds=place.poll_seconds), lease=timedelta(seconds=LEASE_SECONDS),
            heartbeat_interval=timedelta(seconds=LEASE_SECONDS / 4),
        )  # fmt: skip
        return Worker(
            self._stores, factory, shift=options, duties=self._duties(), clock=clock, elastic=self._elastic(place)
        )

    def _elastic(self, _place: Place) -> ElasticOptions | None:
        """Return which queues of a worker have elastic slots; a test may say some."""
        return None

    def _tasks(self, place: Place, actor: Actor, *, new: bool) -> Registry:
        """Return what a worker knows."""
        return registry(new=new or place.new, capped=new or place.capped)

    def _queues(self, place: Place) -> dict[str, int]:
        """Return the queues that a worker takes from, and its slots."""
        return {MAIN: place.slots, SIDE: 2, GATED: place.gated_slots}

    def _breakers(self) -> BreakerMiddleware:
        return BreakerMiddleware(BreakerReports(self._stores.admission))

    def _child_crashes(self) -> bool:
        import random

        return not self.healed and random.random() < self._scenario.child_crashes  # noqa: S311 - seeded

    def _duties(self) -> DutyOptions:
        kept = self._scenario.keep_seconds
        keep = timedelta(days=7) if kept is None else timedelta(seconds=kept)
        return DutyOptions(
            check_interval=timedelta(seconds=1), aggregate_interval=timedelta(seconds=4),
            seal_timeout=timedelta(seconds=6), prune_interval=timedelta(seconds=3),
            retention=Retention(succeeded=keep, failed=keep, cancelled=keep),
        )  # fmt: skip

    def crash(self, number: int) -> None:
        """Kill the worker of a place: nothing of it runs any more."""
        process, self.current[number] = self.current[number], None
        if process is not None:
            self._referee.note(process.actor, "dies")
            self._loop.kill(process.actor)
            self._table.remove(process.actor.name)

    def freeze(self, number: int, seconds: float) -> None:
        """Let nothing of a worker run for some time."""
        process = self.current[number]
        if process is None or not process.actor.present:
            return
        self._referee.note(process.actor, "freezes for", seconds)
        self._loop.freeze(process.actor)
        self._loop.call_at_world_time(self._loop.now + seconds, self.thaw, process, context=WORLD.context())

    def cut_off(self, number: int, seconds: float) -> None:
        """Let no call of a worker arrive for some time."""
        process = self.current[number]
        if process is not None:
            self._referee.note(process.actor, "is cut off for", seconds)
            self._network.cut_off(process.actor, seconds)

    def thaw(self, process: Process) -> None:
        """Let a frozen worker go on."""
        if process.actor.frozen and not process.actor.dead:
            self._referee.note(process.actor, "thaws")
            self._loop.thaw(process.actor)

    def stop(self, number: int) -> None:
        """Stop a worker in order, as on SIGTERM, and start another one afterwards."""
        process = self.current[number]
        if process is None or process.stopping:
            return
        self._referee.note(process.actor, "is asked to stop")
        process.stopping = True
        context = process.actor.context()
        self._loop.create_task(self._stop(process, number), context=context)

    async def _stop(self, process: Process, number: int) -> None:
        shift, begun_at = process.worker.session, self._loop.now
        await process.worker.stop(GRACE)
        self._referee.note(process.actor, "has stopped")
        if shift is not None and self._network.undisturbed(process.actor, begun_at):
            left = [job.id for job in self._referee.state.running.values() if job.session == shift.id]
            if left:
                self._referee.breach("a stop in order leaves nothing", f"{process.actor} left {left} running")
        if self.current[number] is process:
            self.crash(number)
            self.start_later(number, RESTART_SECONDS)
