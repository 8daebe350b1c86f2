"""The app of memory on a real PostgreSQL, with the scripted model of its samples."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import asyncpg
import httpx2
import pytest
from click.testing import CliRunner, Result

from headrace import App
from headrace.apps.memory import means
from headrace.apps.memory.samples.model import answer
from headrace.apps.memory.worker import app
from headrace.cli.root import cli
from headrace.memory_settings import MemorySettings
from headrace.model_settings import ModelSettings
from headrace.settings import QueueSettings, Settings
from headrace.testing.provider import ScriptedProvider
from headrace.wiring import migrate
from tests.backends.postgres import new_schema_name
from tests.backends.server import shared_server
from tests.unit.engine_app import QUICK
from tests.unit.service_calls import served

USERS = "/api/v1/memory/users"
FLUSHES = "/api/v1/memory/flushes"
#: Nobody listens there.
NOWHERE = ModelSettings(model="nobody", base_url="http://127.0.0.1:9/v1", api_key="none")
ADA = [{"role": "user", "content": "My name is Ada and I live in Lyon. I work as a baker."}]
WEI = [{"role": "user", "content": "我叫王伟，我住在北京。我喜欢绿茶。"}]


def settings_of(folder: Path, llm: ModelSettings = NOWHERE, **given: Any) -> Settings:
    """Return settings with schemas of their own."""
    queue = QueueSettings(url=shared_server().dsn, schema=new_schema_name())
    return replace(
        QUICK, directory=folder, queue=queue, llm=llm, memory=MemorySettings(schema=new_schema_name(), **given)
    )


@contextmanager
def settled(settings: Settings, *, migrated: bool = True) -> Iterator[App]:
    """Let the one app of memory have settings of a test; its schemas are gone afterwards."""
    if migrated:
        _in_thread(migrate(settings))
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(app.__dict__, "settings", settings)
        means.terms.cache_clear()
        try:
            yield app
        finally:
            means.terms.cache_clear()
            _in_thread(_drop(settings.queue.schema, settings.memory.schema))


def _in_thread(work: Any) -> None:
    """Run a coroutine whether a loop runs here or not."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, work).result()


async def _drop(*schemas: str) -> None:
    connection = await asyncpg.connect(shared_server().dsn)
    for schema in schemas:
        await connection.execute(f'DROP SCHEMA IF EXISTS "{schema}" CASCADE')
    await connection.close()


@asynccontextmanager
async def memory_served(folder: Path, **given: Any) -> AsyncIterator[httpx2.AsyncClient]:
    """Serve memory that nobody works on."""
    with settled(settings_of(folder, **given)) as made:
        async with served(made, worker=False) as client:
            await means.TABLES.set_up()
            yield client


@asynccontextmanager
async def memory_made(folder: Path, **given: Any) -> AsyncIterator[tuple[httpx2.AsyncClient, ScriptedProvider]]:
    """Serve memory, with somebody who works and a model."""
    async with ScriptedProvider(answer=answer) as provider:
        llm = ModelSettings(model=provider.model, base_url=provider.base_url, api_key=provider.api_key)
        with settled(settings_of(folder, llm, **given)) as made:
            async with made:
                await means.TABLES.set_up()
            async with served(made) as client:
                yield client, provider


class Commands:
    """Runs `headrace memory …` in this process."""

    def __call__(self, *arguments: object, given: str | bytes | None = None) -> Result:
        """Run one command line and return its output, its errors and its exit code."""
        return CliRunner().invoke(cli, ["memory", *map(str, arguments)], input=given)

    def text(self, *arguments: object, given: str | None = None) -> str:
        """Run a command that must succeed and return what it wrote for people."""
        result = self(*arguments, given=given)
        assert result.exit_code == 0, result.output
        return result.stdout

    def json(self, *arguments: object, given: str | None = None) -> Any:
        """Run a command with --json that must succeed and return its document."""
        return json.loads(self.text(*arguments, "--json", given=given))

    def refusal(self, *arguments: object, given: str | bytes | None = None) -> tuple[int, str, str]:
        """Run a command with --json that must fail; return its exit code, its error's word and text."""
        result = self(*arguments, "--json", given=given)
        assert result.stdout == "", result.stdout
        error = json.loads(result.stderr.splitlines()[-1])["error"]
        assert "trace" not in error, error
        return result.exit_code, error["code"], error["message"]


@contextmanager
def commands(folder: Path, llm: ModelSettings = NOWHERE, **given: Any) -> Iterator[Commands]:
    """Run commands on schemas of their own."""
    with settled(settings_of(folder, llm, **given)):
        yield Commands()


@contextmanager
def without_rights() -> Iterator[None]:
    """Let the app be a user of the database who may use the tables of the store, and not those of memory."""
    settings, name = app.settings, f"reader_{new_schema_name()}"
    store = f'"{settings.queue.schema}"'
    grants = f"""CREATE ROLE {name} LOGIN; GRANT USAGE ON SCHEMA {store} TO {name};
        GRANT ALL ON ALL TABLES IN SCHEMA {store} TO {name}; GRANT ALL ON ALL SEQUENCES IN SCHEMA {store} TO {name}"""
    url = shared_server().dsn.replace("://headrace@", f"://{name}@")
    _in_thread(_execute(grants))
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(app.__dict__, "settings", replace(settings, queue=replace(settings.queue, url=url)))
        yield
    _in_thread(_execute(f"DROP OWNED BY {name}; DROP ROLE {name}"))


async def _execute(statements: str) -> None:
    connection = await asyncpg.connect(shared_server().dsn)
    await connection.execute(statements)
    await connection.close()
