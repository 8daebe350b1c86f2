"""The end of a run: faults stop, somebody settles what people left half done, and everything has to come to rest."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from headrace.model.batch import BatchState
from headrace.testing.simulation.faults import Fate
from headrace.testing.simulation.loop import WORLD

if TYPE_CHECKING:
    from headrace.testing.simulation.world import World

#: By then all work is done: retries are short, leases end, and every sweep comes by several times.
REST_SECONDS = 60.0
LOOK_SECONDS = 0.5
SETTLE_EVERY = 4.0


class Rest:
    """Waits for rest, in bounded virtual time, and judges it."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._until = 0.0

    def begin(self) -> None:
        """End the faults, and bring the newest code everywhere."""
        world = self._world
        world.referee.note("the faults are over")
        world.calm_down()
        self._until = world.loop.now + REST_SECONDS
        for number, process in enumerate(world.processes.current):
            if process is not None:
                world.processes.thaw(process)
                if not (process.place.new and process.place.capped):
                    world.processes.crash(number)
            world.processes.start(number)
        self._settle()
        self._later(LOOK_SECONDS, self._look)

    def _later(self, seconds: float, what: object) -> None:
        loop = self._world.loop
        loop.call_at_world_time(loop.now + seconds, what, context=WORLD.context())  # type: ignore[arg-type]

    def _settle(self) -> None:
        operator = self._world.submitters[-1]
        self._world.start_as(operator, operator.settle())
        # A submitter may begin another batch, or fall silent, only now.
        self._later(SETTLE_EVERY, self._settle)

    def _look(self) -> None:
        unrest = self._unrest()
        if not unrest:
            self._world.referee.thorough()
            self._world.loop.stop()
        elif self._world.loop.now > self._until:
            self._world.referee.breach("everything comes to rest", f"{REST_SECONDS:g} s after the last fault {unrest}")
        else:
            self._later(LOOK_SECONDS, self._look)

    def _unrest(self) -> str:
        """Return what is not at rest, or nothing."""
        world = self._world
        state = world.state
        if state.jobs:
            views = [f"{job.id} ({job.spec.task}, {job.state})" for job in list(state.jobs.values())[:3]]
            return f"{len(state.jobs)} jobs are not final: {', '.join(views)}"
        for batch in state.batches.values():
            if batch.state is not BatchState.CLOSED:
                return f"batch {batch.new.id} is {batch.state}"
        if world.executions.any:
            return "a handler runs"
        return self._unrest_of_processes()

    def _unrest_of_processes(self) -> str:
        world = self._world
        for process in filter(None, world.processes.current):
            if not process.worker.quiet:
                return f"{process.actor} is not quiet"
        dead = any(submitter.actor.dead for submitter in world.submitters)
        waiting = [job_id for job_id in world.known.waiting if job_id in world.state.finished]
        return f"somebody waits for {waiting}, which are final" if waiting and not dead else ""

    def counts(self) -> dict[str, int]:
        """Return what happened how often."""
        world = self._world
        fates = {f"calls: {fate.value}": world.network.fates.get(fate, 0) for fate in Fate}
        ends = Counter(f"jobs: {row.state.value}" for row in world.state.finished.values())
        return {
            **fates, **ends, **world.gate.counts, "gate: probes": world.breakers.probes,
            "processes": len(world.processes.actors), "batches": len(world.state.batches),
            "crashed attempts": sum(row.job.crashes for row in world.state.finished.values()),
        }  # fmt: skip
