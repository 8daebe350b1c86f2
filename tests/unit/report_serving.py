"""The app of reports, served in this process; its models answer as those of the example."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest

from headrace import App
from headrace.apps.report import model_watch
from headrace.apps.report.worker import app
from headrace.engine.registry import RunsIn
from headrace.model_settings import ModelSettings
from headrace.report_settings import ReportSettings
from headrace.testing.provider import Answers, Fault, ScriptedProvider
from tests.unit.engine_app import QUICK
from tests.unit.service_calls import served

ROOT = Path(__file__).resolve().parent.parent.parent
ANSWERS = ROOT / "examples" / "07_report" / "answers.json"
REPORTS, FILES = "/api/v1/reports", "/api/v1/reports/files"
BYTES = {"content-type": "application/octet-stream"}
#: Nobody listens there.
NOWHERE = ModelSettings(model="nobody", base_url="http://127.0.0.1:9/v1", api_key="none")
SHEET = b"Case ID,Title,Module,Result,Actual Result\n" + b"".join(
    b"C%d,Pay order %d,Payment,%s,the page stays white\n" % (number, number, b"Fail" if number % 4 == 0 else b"Pass")
    for number in range(1, 13)
)


@contextmanager
def settled(folder: Path, llm: ModelSettings = NOWHERE, **report: Any) -> Iterator[App]:
    """Let the one app of reports have settings of a test, and all tasks in this process, which has the store."""
    settings = replace(QUICK, directory=folder, llm=llm, report=ReportSettings(**report))
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(app.__dict__, "settings", settings)
        for task in app.registry:
            if task.runs_in is RunsIn.PROCESS:
                patch.setitem(app.registry._tasks, task.name, replace(task, runs_in=RunsIn.LOOP))
        patch.setattr(model_watch.WATCH, "_failures", 0)
        yield app


@asynccontextmanager
async def reports_served(folder: Path, **report: Any) -> AsyncIterator[httpx2.AsyncClient]:
    """Serve reports that nobody works on."""
    with settled(folder, **report) as app:
        async with served(app, worker=False) as client:
            yield client


@asynccontextmanager
async def reports_made(folder: Path, *faults: Fault) -> AsyncIterator[tuple[httpx2.AsyncClient, ScriptedProvider]]:
    """Serve reports, with somebody who works and a model."""
    async with ScriptedProvider(rules=Answers.load(ANSWERS), faults=faults) as provider:
        llm = ModelSettings(model=provider.model, base_url=provider.base_url, api_key=provider.api_key)
        with settled(folder, llm) as app:
            async with served(app) as client:
                yield client, provider


async def send(client: httpx2.AsyncClient, name: str, data: bytes = SHEET) -> httpx2.Response:
    """Send a file."""
    return await client.put(f"{FILES}/{name}", content=data, headers=BYTES)


async def build(client: httpx2.AsyncClient, *, headers: dict[str, str] | None = None, **more: Any) -> httpx2.Response:
    """Ask for a report of the file that was sent."""
    return await client.post(REPORTS, json={"file_ref": "file:cases.csv"} | more, headers=headers)
