"""Running `headrace` as people do: processes of their own, on a real PostgreSQL."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

import asyncpg
import psutil

from headrace import App
from headrace.engine.queries import show_job
from headrace.model.job import JobView
from headrace.model.session import SessionView
from headrace.settings import QueueSettings, Settings
from headrace.wiring import migrate
from tests.backends.postgres import new_schema_name
from tests.backends.server import shared_server
from tests.waiting import wait_until_sync

T = TypeVar("T")

#: How long a command may take to say something.
PATIENCE_SECONDS = 30

JOBS = '''
import asyncio, os, threading, time
from pathlib import Path
from headrace import App, Fail

app = App()

@app.task
async def double(number: int) -> int:
    return 2 * number

@app.task
async def refuse() -> Fail:
    return Fail("not today")

@app.task
async def until(path: str) -> str:
    """Run until a file exists."""
    while not Path(path).exists():
        await asyncio.sleep(0.01)
    return "done"

@app.task
def hold(path: str) -> None:
    """Hold a thread until a file exists, whatever anybody says."""
    while not Path(path).exists():
        threading.Event().wait(0.01)

@app.task
async def block(path: str) -> None:
    """Block the event loop until a file exists."""
    hold.__wrapped__(path)

@app.task
async def whoami() -> int:
    return os.getpid()
'''


@dataclass
class Place:
    """A folder with an app, a store, and the processes that were started there."""

    folder: Path
    url: str
    schema: str
    processes: list[Process] = field(default_factory=list)
    #: variables of the environment that commands have beside those of the store
    more: Mapping[str, str] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        """The environment of a command."""
        settings = {"HEADRACE_URL": self.url, "HEADRACE_QUEUE_SCHEMA": self.schema} if self.url else {}
        return {**os.environ, **settings, **self.more, "PYTHONFAULTHANDLER": "1"}

    @property
    def settings(self) -> Settings:
        """What the environment of a command says."""
        return Settings(queue=QueueSettings(url=self.url, schema=self.schema, max_pool_size=2))

    def at(self, url: str) -> Place:
        """Return the same folder on another store."""
        return replace(self, url=url)

    def start(self, *arguments: object) -> Process:
        """Start `headrace …`."""
        popen = subprocess.Popen(
            [sys.executable, "-m", "headrace", *map(str, arguments)],
            cwd=self.folder, env=self.environment, text=True, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        process = Process(popen)
        self.processes.append(process)
        return process

    def run(self, *arguments: object) -> tuple[int, str, str]:
        """Run `headrace …` to its end; return its exit code, output and errors."""
        process = self.start(*arguments)
        out, err = process.popen.communicate(timeout=60)
        return process.popen.returncode, out, err

    def json(self, *arguments: object) -> Any:
        """Run a command with --json that must succeed and return its document."""
        code, out, err = self.run(*arguments, "--json")
        assert code == 0, err
        return json.loads(out)

    def worker(self, *options: object) -> Process:
        """Start a worker and return it once it works."""
        process = self.start("worker", "jobs:app", "--json", *options)
        assert process.line()["event"] == "started"
        return process

    def enqueue(self, task: str, *args: object) -> str:
        """Enqueue a job from this process and return its id."""

        async def enqueue(app: App) -> str:
            task_of_file = app.task(name=task)(lambda *args: None)
            return str((await task_of_file.enqueue(*args)).id)

        return self.ask(enqueue)

    def view(self, job: str) -> JobView:
        """Return everything known of a job."""

        async def look(app: App) -> JobView:
            return (await show_job(app.runtime.stores.inspect, UUID(job)))[0]

        return self.ask(look)

    def state(self, job: str) -> str:
        """Return where a job stands."""
        return self.view(job).state.value

    def live_workers(self) -> list[SessionView]:
        """Return the sessions that are alive."""

        async def look(app: App) -> list[SessionView]:
            return [session for session in await app.runtime.stores.inspect.list_sessions() if session.alive]

        return self.ask(look)

    def until_state(self, job: str, state: str) -> None:
        """Wait until a job is in a state."""
        wait_until_sync(lambda: self.state(job) == state, message=f"job {job} to be {state}")

    def ask(self, work: Callable[[App], Coroutine[Any, Any, T]]) -> T:
        """Run `work` on an app of this process on the same store."""

        async def run() -> T:
            async with App(settings=self.settings) as app:
                return await work(app)

        return asyncio.run(run())


@dataclass
class Process:
    """A command that runs."""

    popen: subprocess.Popen[str]

    def line(self) -> Any:
        """Return the next line of JSON it writes; one that writes none in time says where it stands and dies."""
        assert self.popen.stdout is not None
        overdue = threading.Timer(PATIENCE_SECONDS, self.tell, [signal.SIGABRT])
        overdue.start()
        line = self.popen.stdout.readline()
        overdue.cancel()
        if not line:
            assert self.popen.stderr is not None
            raise AssertionError(f"it ended with {self.popen.wait()}: {self.popen.stderr.read()}")
        return json.loads(line)

    def tell(self, number: signal.Signals) -> None:
        """Send a signal."""
        self.popen.send_signal(number)

    def until_logged(self, words: str) -> None:
        """Wait until it logs `words`; what it logged before is gone then."""
        assert self.popen.stderr is not None
        for line in self.popen.stderr:
            if words in line:
                return
        raise AssertionError(f"it ended without saying {words!r}")

    def end(self) -> int:
        """Wait until it ends and return its exit code."""
        self.popen.communicate(timeout=30)
        return self.popen.returncode

    def kill(self) -> None:
        """Leave nothing of it behind."""
        family = [self.popen.pid]
        with contextlib.suppress(psutil.NoSuchProcess):
            family += [child.pid for child in psutil.Process(self.popen.pid).children(recursive=True)]
        for pid in family:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.popen.communicate()


@contextmanager
def place(folder: Path, *, migrated: bool = True) -> Iterator[Place]:
    """Make a folder with an app and a schema of its own; end what was started there."""
    (folder / "jobs.py").write_text(JOBS, encoding="utf-8")
    made = Place(folder, shared_server().dsn, new_schema_name())
    if migrated:
        asyncio.run(migrate(made.settings))
    try:
        yield made
    finally:
        for process in made.processes:
            process.kill()
        asyncio.run(_drop(made.schema))


async def _drop(schema: str) -> None:
    connection = await asyncpg.connect(shared_server().dsn)
    await connection.execute(f'DROP SCHEMA IF EXISTS "{schema}" CASCADE')
    await connection.close()
