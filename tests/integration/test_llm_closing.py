"""An app that closes while calls of a model are under way."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from headrace import App
from headrace.model.calls import CallState
from headrace.model.job import JobState
from headrace.settings import QueueSettings, Settings, load_settings
from headrace.testing.provider import Latency, ScriptedProvider
from tests.backends.postgres import empty_schema, stores_on
from tests.backends.server import shared_server
from tests.waiting import wait_until


def settings_of(provider: ScriptedProvider, schema: str, folder: Path) -> Settings:
    """Return settings of a PostgreSQL store and this provider, with a quota."""
    environ = {**provider.environment, "HEADRACE_LLM_REQUESTS_PER_MINUTE": "6000"}
    queue = QueueSettings(type="postgres", url=shared_server().dsn, schema=schema)
    return replace(load_settings(environ=environ, file=folder / "none.toml"), queue=queue)


async def test_a_call_under_way_is_stored_before_the_store_closes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its asker is gone and the app closes: the paid answer is kept, the session ends, and nothing complains."""
    async with empty_schema() as schema, stores_on(schema, None) as stores:
        latency = Latency(timedelta(seconds=0.5))
        async with ScriptedProvider(latency=latency, answer=lambda request: "Glomma") as provider:
            settings = settings_of(provider, schema, tmp_path)
            async with App(settings=settings) as app:
                asking = asyncio.create_task(app.llm.complete("Name a river in Norway."))
                await wait_until(lambda: provider.calls)
                asking.cancel()

            sessions = await stores.inspect.list_sessions()
            async with App(settings=settings) as app:
                assert await app.llm.complete("Name a river in Norway.") == "Glomma"
            assert len(provider.calls) == 1
    assert [session for session in sessions if session.alive] == []
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


async def test_a_worker_that_ends_does_not_wait_for_a_job_that_waits_for_a_quota(tmp_path: Path) -> None:
    """Though the job is first in line and kept its slot: it leaves, and its call was not sent."""
    async with ScriptedProvider(answer=lambda request: "Glomma") as provider:
        environ = {**provider.environment, "HEADRACE_LLM_REQUESTS_PER_MINUTE": "1"}
        app = App("memory://", settings=load_settings(environ=environ, file=tmp_path / "none.toml"))

        @app.task
        async def name(number: int) -> str:
            return await app.llm.complete(f"Name river {number} in Norway.")

        async with app:
            async with asyncio.timeout(30), app.worker(grace="100s"):
                handle = await name.enqueue(1)
                await wait_until(lambda: app.runtime.stores.budgets.list_calls(state=CallState.PREPARED))
            view = await app.runtime.stores.inspect.get_job(handle.id)
        assert not provider.calls
    assert view is not None
    assert (view.state, view.failures) == (JobState.SCHEDULED, 0)
