"""What operators are told of rates that a Redis server beside a PostgreSQL ledger counts."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from headrace import App, Limit
from headrace.settings import load_settings
from tests.backends.valkey import ValkeyServer
from tests.integration.postgres_setup import schema_stores, shared_server
from tests.waiting import wait_until

MINUTE = timedelta(minutes=1)


@dataclass
class Site:
    """A ledger, a server beside it that counts rates, and the command line on both."""

    server: ValkeyServer
    schema: str
    folder: Path
    waiting: UUID = field(init=False)
    free: UUID = field(init=False)

    @property
    def environment(self) -> dict[str, str]:
        """What tells the settings where all is."""
        return {
            "HEADRACE_QUEUE_URL": shared_server().dsn,
            "HEADRACE_QUEUE_SCHEMA": self.schema,
            "HEADRACE_LIMITS_URL": self.server.url,
        }

    def app(self) -> App:
        """Open the site."""
        return App(settings=load_settings(environ=self.environment))

    async def text(self, *words: object) -> str:
        """Run a command that must succeed without a traceback, and return what it wrote."""
        command = [sys.executable, "-m", "headrace", *map(str, words)]
        ended = await asyncio.to_thread(
            subprocess.run, command, cwd=self.folder, env={**os.environ, **self.environment}, capture_output=True,
            text=True, timeout=60, check=False,
        )  # fmt: skip
        assert (ended.returncode, "Traceback" in ended.stderr) == (0, False), ended.stderr
        return ended.stdout

    async def explained(self, job_id: UUID) -> dict[str, Any]:
        """Return why a job waits."""
        found: dict[str, Any] = json.loads(await self.text("job", "explain", job_id, "--json"))
        return found

    async def rate(self) -> dict[str, Any]:
        """Return the only rate limit."""
        [found] = json.loads(await self.text("limits", "list", "--kind", "rates", "--json"))["rates"]
        assert isinstance(found, dict)
        return found


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    """A site whose worker has used up a rate of one job in ten minutes; one job waits for it, and one for nothing."""
    server = ValkeyServer(port=True, appendonly="no")
    try:
        async with schema_stores() as (schema, _):
            site = Site(server, schema, tmp_path)
            app, started = site.app(), list[int]()

            @app.task(queue="q", limits=[Limit("api", "6/h", burst=1)])
            async def call(number: int) -> None:
                started.append(number)

            @app.task(queue="q")
            async def free() -> None: ...

            async with app.worker():
                # Begins empty there: the first unit is given by hand.
                await wait_until(lambda: server.call("EXISTS", "{headrace::limits}:bucket:api") == ":1")
                await app.limits.give_back("api", 1.0)
                await call.enqueue(1)
                await wait_until(lambda: started == [1])
            async with app:
                site.waiting, site.free = (await call.enqueue(2)).id, (await free.enqueue()).id
            yield site
    finally:
        server.remove()


async def test_a_job_that_waits_for_such_a_rate_is_told_so(site: Site) -> None:
    """The rate that holds it is named with what it has and when it frees; the list says the same."""
    why = await site.explained(site.waiting)
    assert (why["reason"], why["subject"], why["facts"]["level"] < 1.0) == ("rate", "api", True)
    until = datetime.fromisoformat(why["until"]) - datetime.now(UTC)
    assert 8 * MINUTE < until < 10 * MINUTE
    assert "and frees in 9 m" in await site.text("job", "show", site.waiting)
    assert (await site.explained(site.free))["reason"] == "no_worker"
    rate = await site.rate()
    assert (rate["name"], 0.0 <= rate["level"] < 1.0, rate["free_in"].startswith("9m")) == ("api", True, True)


async def test_a_closing_is_shown(site: Site) -> None:
    """A rate that the provider closed is said to be closed, however full it is there; its list says until when."""
    async with site.app() as app:
        await app.limits.give_back("api", 1.0)
        await app.limits.close("api", "1h")
        [view] = (await app.limits.show()).rates
        assert (view.level, view.closed_until is not None) == (1.0, True)
    assert "rate limit api is closed until" in (await site.explained(site.waiting))["sentence"]
    closed = datetime.fromisoformat((await site.rate())["closed_until"]) - datetime.now(UTC)
    assert 58 * MINUTE < closed < 61 * MINUTE


async def test_what_was_thrown_away_there_is_empty(site: Site) -> None:
    """After FLUSHALL a bucket begins empty, and that is what is told of it."""
    site.server.call("FLUSHALL")
    assert (await site.rate())["level"] == 0.0
    why = await site.explained(site.waiting)
    assert (why["reason"], why["facts"]["level"]) == ("rate", 0.0)


async def test_while_the_server_is_away_its_levels_are_unknown(site: Site) -> None:
    """No guess and no failure: the level is unknown, the job is told what it waits for, others are not concerned."""
    site.server.stop(signal.SIGKILL)
    rate = await site.rate()
    assert (rate["level"], rate["free_in"], rate["closed_until"], rate["rate"]["burst"]) == (None, None, None, 1.0)
    listed = await site.text("limits", "list")
    assert ("unknown" in listed, "server that counts rates does not answer" in listed) == (True, True)
    why = await site.explained(site.waiting)
    assert (why["reason"], why["subject"], why["until"], why["facts"]["level"]) == ("rate", "api", None, None)
    assert "counted on a server that does not answer" in why["sentence"]
    assert (await site.explained(site.free))["reason"] == "no_worker"
