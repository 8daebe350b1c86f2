"""Slots: what a live worker believes it runs and the rows that run under its session are the same."""

from __future__ import annotations

from collections import Counter

from headrace.engine.shift import Shift
from headrace.testing.simulation.executions import Executions
from headrace.testing.simulation.processes import Process, Processes
from headrace.testing.simulation.referee import Referee

#: Time moves in many small steps; looking at each is not worth its price.
LOOK_EVERY = 8


class SlotRules:
    """Compares the two at moments when nothing is ready to run and no call of the worker is under way."""

    def __init__(self, referee: Referee, processes: Processes, executions: Executions) -> None:
        self._referee, self._processes, self._executions = referee, processes, executions
        self._moments = 0

    def look(self) -> None:
        """Look at every worker that can be looked at; called when time is about to move on."""
        self._moments += 1
        if self._moments % LOOK_EVERY == 0:
            self.compare_all()
            self._executions.check_leases()

    def compare_all(self) -> None:
        """Compare now."""
        for process in self._processes.current:
            if process is not None and process.working and not self._referee.network.under_way.get(process.actor):
                shift = process.worker.session
                if shift is not None and not shift._lost and self._referee.state.alive(shift.id):
                    self._compare(process, shift)

    def _compare(self, process: Process, shift: Shift) -> None:
        # A claim whose answer was lost may have taken jobs that the worker is going to look for.
        in_doubt = any(claimer._looks for claimer in shift._claimers.values())
        rows = [job for job in self._referee.state.running.values() if job.session == shift.id]
        held, runs = {(job.id, job.attempt) for job in rows}, set(shift._attempts)
        # An ack whose answer was lost is recorded, and the worker cannot know it yet.
        if not runs <= held or not (in_doubt or held <= runs | shift._acks.pending):
            what = f"{process.actor} runs {runs} and reports {shift._acks.pending}; under its session run {held}"
            self._referee.breach("slots used = running rows", what)
        used = Counter(attempt.job.queue for attempt in shift._attempts.values())
        for queue, claimer in shift._claimers.items():
            if claimer._free + used[queue] != shift.queues[queue]:
                what = f"{process.actor} has {claimer._free} free slots of {queue} and runs {used[queue]} jobs there"
                self._referee.breach("slots used = running rows", what)
