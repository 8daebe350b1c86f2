"""The supervisor of `--processes N`: keeps N processes of a worker or of agents alive until it is told to stop.

A dead process is replaced: at once after it ran for a while or lost its lease, later and later when it dies again
and again as soon as it starts. It gives up only when no restart can help: a wrong configuration, or a store that
could not be reached from the beginning.
The processes hold the read end of a pipe whose write end only the supervisor has, so they stop with it however it
dies, and they are in sessions of their own, so that a Ctrl-C reaches them once and through it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import time
from dataclasses import dataclass, field
from datetime import timedelta

from headrace.cli.exits import Exit
from headrace.cli.signals import StopSignals
from headrace.cli.working import CLOSING_SECONDS, WorkOptions
from headrace.engine.loops.heartbeat import EXIT_LEASE_LOST
from headrace.model.durations import format_duration

LOG = logging.getLogger("headrace.supervisor")

#: How a process is started. -P: a module of the user's named like one of ours must not be taken for it.
HEADRACE = (sys.executable, "-P", "-m", "headrace")

#: A process that ran this long is healthy: its next death starts the delays anew.
HEALTHY_SECONDS = 10.0
FIRST_DELAY = 0.5
LONGEST_DELAY = 30.0
#: Endings that another start cannot mend, at least while no process has been healthy.
HOPELESS = {Exit.USAGE, Exit.UNREACHABLE, Exit.NOT_ALLOWED}


@dataclass(slots=True)
class Restarts:
    """Decides when the next process starts.

    >>> restarts = Restarts()
    >>> [restarts.delay(1, lived=0.1) for _ in range(3)], restarts.delay(1, lived=60.0), restarts.delay(75, lived=1.0)
    ([0.5, 1.0, 2.0], 0.0, 0.0)
    """

    early_deaths: int = 0
    proven: bool = False

    def delay(self, code: int, *, lived: float) -> float:
        """Return the seconds to wait after a process ended with `code` (negative: by a signal)."""
        if lived >= HEALTHY_SECONDS or code == EXIT_LEASE_LOST:
            self.early_deaths, self.proven = 0, True
            return 0.0
        self.early_deaths += 1
        return float(min(FIRST_DELAY * 2 ** (self.early_deaths - 1), LONGEST_DELAY))

    def hopeless(self, code: int) -> bool:
        """Whether starting again cannot help."""
        return not self.proven and code in HOPELESS


def worker_command(options: WorkOptions, log_level: str) -> list[str]:
    """Return the command of one process."""
    command = [*HEADRACE, "worker", options.app, "--processes", "1"]
    command += ["--log-level", log_level]
    for name, slots in options.queues.items():
        command += ["--queue", name if slots is None else f"{name}:{slots}"]
    if options.concurrency is not None:
        command += ["--concurrency", str(options.concurrency)]
    if options.grace is not None:
        command += ["--grace", format_duration(options.grace)]
    return [*command, "--json"] if options.as_json else command


@dataclass(slots=True)
class Supervisor:
    """Keeps processes alive."""

    command: list[str]
    #: Processes that have not ended this long after they were told to stop are killed.
    patience: timedelta
    _stopping: asyncio.Event = field(default_factory=asyncio.Event)
    _processes: set[asyncio.subprocess.Process] = field(default_factory=set)
    _code: int = Exit.OK

    async def run(self, count: int) -> int:
        """Keep `count` processes alive until a signal; return the exit code."""
        loop = asyncio.get_running_loop()
        signals = StopSignals(
            lambda: loop.call_soon_threadsafe(self.stop), lambda: loop.call_soon_threadsafe(self.kill)
        )
        signals.install()
        reader, writer = os.pipe()
        try:
            async with asyncio.TaskGroup() as group:
                for number in range(1, count + 1):
                    group.create_task(self._keep_alive(number, reader))
                group.create_task(self._end())
        finally:
            os.close(reader)
            os.close(writer)
        return self._code or signals.exit_code

    def stop(self, code: int = Exit.OK) -> None:
        """Tell every process to stop; do not start others."""
        self._code = self._code or code
        self._stopping.set()

    def kill(self) -> None:
        """End every process at once."""
        self._code = Exit.INTERRUPTED
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        for process in self._processes:
            process.send_signal(number)

    async def _end(self) -> None:
        """When it is time, tell the processes to stop; kill those that do not."""
        await self._stopping.wait()
        LOG.info("stopping %d processes", len(self._processes))
        self._signal(signal.SIGTERM)
        endings = [asyncio.create_task(process.wait()) for process in self._processes]
        if not endings:
            return
        _, late = await asyncio.wait(endings, timeout=self.patience.total_seconds())
        if late:
            LOG.error("killing %d processes that did not stop within %s", len(late), format_duration(self.patience))
            self._signal(signal.SIGKILL)

    async def _keep_alive(self, number: int, lifeline: int) -> None:
        restarts = Restarts()
        while not self._stopping.is_set():
            started = time.monotonic()
            code = await self._run_once(number, lifeline)
            if self._stopping.is_set():
                return
            if restarts.hopeless(code):
                LOG.error("process %d ended with code %d, which another start cannot mend", number, code)
                self.stop(code)
                return
            delay = restarts.delay(code, lived=time.monotonic() - started)
            LOG.warning("process %d ended (%s); the next one starts in %g s", number, _describe(code), delay)
            await self._pause(delay)

    async def _run_once(self, number: int, lifeline: int) -> int:
        process = await asyncio.create_subprocess_exec(
            *self.command, "--lifeline", str(lifeline), pass_fds=[lifeline], start_new_session=True,
            stdin=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        self._processes.add(process)
        LOG.info("process %d has pid %d", number, process.pid)
        try:
            if self._stopping.is_set():
                process.terminate()
            return await process.wait()
        finally:
            self._processes.discard(process)

    async def _pause(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._stopping.wait()
        except TimeoutError:
            return


def _describe(code: int) -> str:
    if code == EXIT_LEASE_LOST:
        return "its lease was lost"
    return f"code {code}" if code >= 0 else f"killed by {signal.Signals(-code).name}"


def supervise(options: WorkOptions, count: int, *, log_level: str, grace: timedelta) -> int:
    """Run `count` worker processes until a signal; return the exit code."""
    return keep_alive(worker_command(options, log_level), count, grace=grace)


def keep_alive(command: list[str], count: int, *, grace: timedelta) -> int:
    """Run `count` processes of a command until a signal; return the exit code."""
    patience = grace + timedelta(seconds=CLOSING_SECONDS)
    return asyncio.run(Supervisor(command, patience).run(count))
