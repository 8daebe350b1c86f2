"""A worker process of a contender: started, watched, stopped or killed."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from headrace.bench.children import end_with_parent
from headrace.bench.contenders.base import Contender
from headrace.bench.notes import VARIABLE

#: A worker that was told to stop may still do so this long.
STOP_SECONDS = 5.0
#: How much of what it wrote is told when it ends by itself.
TAIL = 2_000


class WorkerEndedError(Exception):
    """The worker ended by itself."""


class WorkerProcess:
    """One worker process and where its handlers note what they saw."""

    def __init__(self, contender: Contender, folder: Path, within: Sequence[str] = ()) -> None:
        self.notes, self._log = folder / "notes", folder / "log"
        environment = {**contender.worker_environment(), VARIABLE: str(self.notes)}
        self.started_at = time.monotonic()
        with self._log.open("wb") as log:
            # A process group of its own: stopped with the children some systems have, and after a Ctrl-C only by us.
            self._process = subprocess.Popen(  # noqa: S603 - our own command lines
                [*within, *contender.worker_command()], env=environment, cwd=folder, stdin=subprocess.DEVNULL,
                stdout=log, stderr=log, start_new_session=True, preexec_fn=end_with_parent,
            )  # fmt: skip

    @property
    def pid(self) -> int:
        """The worker."""
        return self._process.pid

    def check(self) -> None:
        """Raise WorkerEndedError when it has ended."""
        if self._process.poll() is not None:
            raise WorkerEndedError(f"the worker ended with {self._process.returncode}: {self.written}")

    @property
    def written(self) -> str:
        """The end of what it wrote."""
        return self._log.read_text("utf-8", errors="replace")[-TAIL:].strip()

    def kill(self) -> None:
        """End it as a crash does."""
        self._signal(signal.SIGKILL)
        self._process.wait()

    async def stop(self) -> None:
        """Ask it to stop, then make it."""
        self._signal(signal.SIGTERM)
        deadline = time.monotonic() + STOP_SECONDS
        while self._process.poll() is None and time.monotonic() < deadline:  # noqa: ASYNC110 - of another process
            await asyncio.sleep(0.02)
        self.kill()

    def _signal(self, number: signal.Signals) -> None:
        try:
            os.killpg(self._process.pid, number)
        except ProcessLookupError:
            return


@asynccontextmanager
async def working(contender: Contender, *, within: Sequence[str] = ()) -> AsyncIterator[WorkerProcess]:
    """Run a worker process until the block ends; `within` begins its command."""
    with tempfile.TemporaryDirectory(prefix="headrace-bench-") as folder:
        worker = WorkerProcess(contender, Path(folder), within)
        try:
            yield worker
            await worker.stop()
        finally:
            worker.kill()
