"""Workers and clients of the previous release go on while the schema is that of this one.

Its code is started from an archive: see the package's docstring.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import tarfile
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from shutil import copy
from typing import Any, TypeVar

import pytest

import headrace
from headrace import App
from headrace.settings import load_settings
from tests.acceptance.command_runs import Place, place
from tests.backends import valkey
from tests.waiting import wait_until, wait_until_sync

T = TypeVar("T")

ARCHIVE = Path(__file__).with_name("previous_release.tar.gz")
MIGRATION = r"src/headrace/stores/postgres/migrations/\w+\.sql"
SOURCE = Path(headrace.__file__).parent
PATIENCE = timedelta(seconds=90)
#: The dead are found soon, whichever release looks for them.
SOON = {
    "HEADRACE_QUEUE_VISIBILITY_TIMEOUT": "3s",
    "HEADRACE_WORKER_HEARTBEAT_INTERVAL": "750ms",
    "HEADRACE_RECOVERY_CHECK_INTERVAL": "500ms",
    "HEADRACE_RECOVERY_AGGREGATE_INTERVAL": "1s",
}

pytestmark = pytest.mark.acceptance


@dataclass
class Release:
    """A release of Headrace that processes are started of."""

    #: The folder that its package lies in.
    folder: Path
    place: Place
    logs: list[Path] = field(default_factory=list)

    @property
    def environment(self) -> dict[str, str]:
        """The variables of its processes: this folder comes before the one that is installed."""
        return {**os.environ, **variables(self.place), **SOON, "PYTHONPATH": str(self.folder)}

    def run(self, *words: str) -> str:
        """Run a Python program to its good end, and return what it says."""
        done = subprocess.run(
            [sys.executable, *words], cwd=self.place.folder, env=self.environment, capture_output=True, text=True,
            timeout=PATIENCE.total_seconds(), check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    def send(self, token: str) -> dict[str, Any]:
        """Let a client of this release send one of everything, and return what came of it."""
        said: dict[str, Any] = json.loads(self.run("app.py", token))
        assert said["release"] == str(self.folder / "headrace")
        return said

    def worker(self) -> subprocess.Popen[bytes]:
        """Start a worker, and return it once it works."""
        log = self.place.folder / f"worker-{self.folder.name}-{len(self.logs)}.log"
        self.logs.append(log)
        with log.open("wb") as stream:
            process = subprocess.Popen(
                [sys.executable, "-m", "headrace", "worker", "app:app", "--json", "--concurrency", "4"],
                cwd=self.place.folder, env=self.environment, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream,
                start_new_session=True,
            )  # fmt: skip

        def started() -> bool:
            assert process.poll() is None, log.read_text()
            return '"started"' in log.read_text()

        try:
            wait_until_sync(started, PATIENCE)
        except BaseException:
            end(process)
            raise
        return process

    def complaints(self) -> list[str]:
        """Return what its workers logged as an error."""
        lines = (line for log in self.logs for line in log.read_text().splitlines())
        return [line for line in lines if '"level": "error"' in line.lower() or "Traceback" in line]


@pytest.fixture(params=["postgres", pytest.param("redis", marks=pytest.mark.slow)])
def at(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """A schema or a namespace of its own that nobody has made yet, and the app."""
    copy(Path(__file__).with_name("app.py"), tmp_path / "app.py")
    with place(tmp_path, migrated=False) as made:
        yield made if request.param == "postgres" else made.at(valkey.shared_server().url)


def variables(at: Place) -> dict[str, str]:
    """Return where the jobs lie, as the environment says it."""
    named = dict.fromkeys(("HEADRACE_QUEUE_SCHEMA", "HEADRACE_QUEUE_STREAM_PREFIX"), at.schema)
    return {"HEADRACE_URL": at.url, **named}


def ask(at: Place, work: Callable[[App], Coroutine[Any, Any, T]]) -> T:
    """Run `work` on an app of this process on the same store."""

    async def run() -> T:
        async with App(settings=load_settings(environ=variables(at), file=Path("none.toml"))) as app:
            return await work(app)

    return asyncio.run(run())


@pytest.fixture
def previous(at: Place, tmp_path: Path) -> Release:
    """The release before this one."""
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    (tmp_path / "unpacked" / "src").rename(tmp_path / "previous")
    return Release(tmp_path / "previous", at)


@pytest.fixture
def this(at: Place) -> Release:
    """What is in this checkout."""
    return Release(SOURCE.parent, at)


def end(*processes: subprocess.Popen[bytes]) -> None:
    """End processes at once."""
    for process in processes:
        process.kill()
        process.wait()


def effects(at: Place) -> list[dict[str, Any]]:
    """Return what handlers noted."""
    log = at.folder / "effects"
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def migrations_before() -> dict[str, bytes]:
    """Return the migrations of the previous release."""
    with tarfile.open(ARCHIVE) as archive:
        names = [Path(name) for name in archive.getnames() if re.fullmatch(MIGRATION, name)]
        return {name.stem: archive.extractfile(str(name)).read() for name in names}  # type: ignore[union-attr]


def migrations_now() -> dict[str, bytes]:
    """Return the migrations of this release."""
    return {path.stem: path.read_bytes() for path in (SOURCE / "stores" / "postgres" / "migrations").glob("*.sql")}


def new_migrations() -> list[str]:
    """Return the names of those that the previous release does not know."""
    return sorted(migrations_now().keys() - migrations_before().keys())


def test_migrations_of_the_previous_release_are_as_they_were() -> None:
    """What was applied somewhere is never changed, and what is new may be applied while old workers run."""
    before, now = migrations_before(), migrations_now()
    assert len(before) >= 14
    assert {name: now.get(name) for name in before} == before
    assert [name for name in new_migrations() if name < max(before) or "_pre_" not in name] == []


def test_the_previous_release_works_on_the_new_schema(previous: Release, this: Release, at: Place) -> None:
    """Its workers run on while the schema is migrated and afterwards, alone and beside new ones, and each release
    takes over what dies with a worker of the other; both say the same of the same key.
    """
    previous.run("-m", "headrace", "migrate")
    old = previous.worker()
    new = None
    try:
        before = previous.send("before")
        applied = json.loads(this.run("-m", "headrace", "migrate", "--json"))["applied"]
        assert applied == (new_migrations() if at.url.startswith("postgresql") else [])
        assert json.loads(previous.run("-m", "headrace", "migrate", "--json"))["applied"] == []
        answers = [before, previous.send("old-alone"), this.send("new-to-old")]
        new = this.worker()
        both_work(at, previous, this)
        answers += [previous.send("old-beside-new"), this.send("new-beside-old")]
        dies(at, old, this)
        old = previous.worker()
        dies(at, new, previous)
    finally:
        end(old, *([new] if new is not None else []))
    for answer in answers:
        assert answer["results"] == [154, 7, 16, "2 went", 0, 1, 2, 3]
        assert (answer["run"], answer["succeeded"]) == ([12, 12], 20)
        assert answer["shared"] == before["shared"]
        assert len(set(answer["batch"])) == 1
    closed = [effect["batch"] for effect in effects(at) if effect["event"] == "closed"]
    assert len(closed) == len(set(closed)) == 5
    assert [effect["number"] for effect in effects(at) if effect["event"] == "double"].count(77) == 1
    assert previous.complaints() + this.complaints() == []


def both_work(at: Place, *releases: Release) -> None:
    """Let five jobs run at once where a worker has room for four: each release has one of them, or none ends."""
    assert set(ask(at, lambda app: all_of(app, "meet", "room"))) == {str(one.folder / "headrace") for one in releases}


def dies(at: Place, dying: subprocess.Popen[bytes], heir: Release) -> None:
    """Kill a worker in the middle: a worker of the other release runs its jobs again, from five at once."""
    name = f"held-{dying.pid}"

    async def kill_and_wait(app: App) -> list[Any]:
        waiting = asyncio.create_task(all_of(app, "hold", name))
        held = await wait_until(lambda: len(found := holders(at, name)) == 5 and found, PATIENCE)
        assert dying.pid in held
        end(dying)
        (at.folder / f"{name}.go").touch()
        return await waiting

    assert set(ask(at, kill_and_wait)) == {str(heir.folder / "headrace")}


def holders(at: Place, name: str) -> list[int]:
    """Return the processes that run jobs which are held."""
    return [effect["pid"] for effect in effects(at) if effect.get("name") == name]


async def all_of(app: App, task: str, name: str) -> list[Any]:
    """Enqueue five jobs of a task and return their results."""
    call = app.task(name=task, queue=task)(lambda name: name)
    jobs = [await call.enqueue(name) for _ in range(5)]
    return [await job.result(PATIENCE) for job in jobs]
