"""One run: the world of a seed is built, worked, healed, and judged."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any

from headrace.stores.memory import stores_over
from headrace.testing.simulation.batch_rules import BatchRules
from headrace.testing.simulation.breaker_rules import BreakerRules
from headrace.testing.simulation.clocks import StoreClock
from headrace.testing.simulation.executions import Executions
from headrace.testing.simulation.faults import Network, across, turn
from headrace.testing.simulation.gate_rules import GateRules
from headrace.testing.simulation.hints import SimulatedNotifier
from headrace.testing.simulation.job_rules import JobRules
from headrace.testing.simulation.lease_rules import LeaseRules
from headrace.testing.simulation.loop import WORLD, VirtualLoop
from headrace.testing.simulation.machine import ProcessTable, simulated_machine
from headrace.testing.simulation.processes import Processes
from headrace.testing.simulation.referee import Referee
from headrace.testing.simulation.report import Run
from headrace.testing.simulation.rest import Rest
from headrace.testing.simulation.scenario import WORKING_SECONDS, Errand, Mishap, draw
from headrace.testing.simulation.share_rules import ShareRules
from headrace.testing.simulation.slots import SlotRules
from headrace.testing.simulation.submitters import Known, Submitter
from headrace.testing.simulation.watch import WatchedState

SUBMITTERS = 2
HOST = "a"


class World:
    """Everything of one run."""

    def __init__(self, seed: int) -> None:
        self.scenario = draw(seed)
        chance = _chances(seed)
        self.loop = VirtualLoop(None if self.scenario.fifo else chance("order"))
        self.table = ProcessTable(self.loop)
        clock = StoreClock(self.loop)
        self.state = WatchedState(clock)
        self.state.turn = turn
        self.referee = Referee(self.loop, self.state)
        self.network = self.referee.network = Network(self.loop, chance("network"), self.referee)
        self.network.weather = self.scenario.weather
        self.notifier = SimulatedNotifier(self.loop, chance("hints"))
        self.notifier.loss = self.scenario.weather.lost_hints
        self.stores = across(self.network, stores_over(self.state, self.notifier))
        self.executions = Executions(self.referee)
        self.processes = Processes(
            self.scenario, self.loop, stores=self.stores, table=self.table, referee=self.referee,
            executions=self.executions, network=self.network,
        )  # fmt: skip
        self.known = Known()
        self.submitters: list[Submitter] = []
        self._clock, self._chance = clock, chance
        self.gate, self.breakers = GateRules(self.referee), BreakerRules(self.referee)
        slots = SlotRules(self.referee, self.processes, self.executions)
        self.referee.rules = [
            JobRules(self.referee),
            self.executions,
            LeaseRules(self.referee),
            BatchRules(self.referee),
            self.gate,
            self.breakers,
            ShareRules(self.referee),
        ]
        self.loop.on_idle = slots.look
        self.loop.set_exception_handler(self._on_error)
        self.rest = Rest(self)

    def _on_error(self, _loop: Any, context: dict[str, Any]) -> None:
        error = context.get("exception")
        self.referee.breach("no surprises", f"{context['message']}: {error!r}")

    def alarm(self, what: str) -> None:
        """The engine logged an error that it did not expect."""
        self.referee.breach("no surprises", what)

    def play(self) -> None:
        """Run to the end or to the first breach."""
        for number in range(SUBMITTERS + 1):
            self._add_submitter(f"c{number}")
        for number in range(len(self.scenario.places)):
            self.processes.start(number)
        for errand in self.scenario.errands:
            self._at(errand.at, self._run_errand, errand)
        for mishap in self.scenario.mishaps:
            self._at(mishap.at, self._happen, mishap)
        self._at(WORKING_SECONDS, self.rest.begin)
        self.loop.run_forever()

    def _at(self, when: float, what: Callable[..., None], *args: Any) -> None:
        self.loop.call_at_world_time(when, what, *args, context=WORLD.context())

    def _add_submitter(self, name: str) -> None:
        actor = self.processes.add_actor(name, HOST)
        submitter = Submitter(actor, self.stores, clock=self._clock, chance=self._chance(name), known=self.known)
        submitter.die = lambda: self._kill_submitter(submitter)
        self.submitters.append(submitter)

    def _kill_submitter(self, submitter: Submitter) -> None:
        self.referee.note(submitter.actor, "dies")
        self.loop.kill(submitter.actor)

    def _run_errand(self, errand: Errand) -> None:
        submitter = self.submitters[errand.who]
        if not submitter.actor.dead:
            self.referee.note(submitter.actor, "sets out to", errand.kind)
            self.start_as(submitter, submitter.run(errand))

    def start_as(self, submitter: Submitter, work: Any) -> asyncio.Task[Any]:
        """Let a submitter do something."""
        return self.loop.create_task(work, context=submitter.actor.context())

    def _happen(self, mishap: Mishap) -> None:
        match mishap.kind:
            case "crash":
                self.processes.crash(mishap.place)
                self.processes.start_later(mishap.place, mishap.seconds)
            case "freeze":
                self.processes.freeze(mishap.place, mishap.seconds)
            case "cut":
                self.processes.cut_off(mishap.place, mishap.seconds)
            case "stop":
                self.processes.stop(mishap.place)

    def calm_down(self) -> None:
        """End all faults."""
        self.network.calm_down()
        self.notifier.loss, self.processes.healed = 0.0, True


def _chances(seed: int) -> Callable[[str], Random]:
    """Return a source of independent random numbers for each purpose."""
    return lambda purpose: Random(f"{seed} {purpose}")  # noqa: S311 - a simulation, no secrets


def run_seed(seed: int, *, traced: bool = False) -> Run:
    """Run one seed and say what came of it.

    With `traced` the whole trace is returned, else only that of a run that broke an invariant: putting it into words
    takes longer than the run.

    >>> run_seed(1).ok
    True
    """
    world = World(seed)
    with simulated_machine(seed, world.loop, world.table, world.alarm):
        try:
            world.play()
        finally:
            world.referee.over = True
            world.loop.dispose([WORLD, *world.processes.actors])
            WORLD.tasks.clear()
    referee = world.referee
    lines = referee.trace.lines() if traced or referee.violation is not None else ()
    return Run(seed, referee.steps, world.loop.now, world.rest.counts(), referee.violation, lines)
