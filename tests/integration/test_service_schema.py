"""The service against its own OpenAPI: what it says may be asked is asked, within and beyond its bounds."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from headrace import App
from headrace.apps.details import desk as details
from headrace.apps.papers import job as papers
from headrace.apps.papers.submitting import PapersRequest, submit_papers
from headrace.model_settings import ModelSettings
from headrace.papers_settings import PaperSettings
from headrace.service.application import make_service
from headrace.service.serving import Address, serve
from headrace.settings import QueueSettings, Settings
from tests.backends.postgres import new_schema_name, stores_on
from tests.backends.server import shared_server
from tests.unit.service_calls import shop

#: The service runs in a thread beside, and its jitter is taken for a strategy's.
pytestmark = pytest.mark.filterwarnings("ignore:Do not use the `random` module")
#: Requests of each operation on the memory store and, where many are asked for, on PostgreSQL.
FEW, MANY = 6, 60
CHECKS = [
    not_a_server_error, status_code_conformance, content_type_conformance, response_headers_conformance,
    response_schema_conformance,
]  # fmt: skip
SECONDS = 20


class Service:
    """The service of an app in a thread of its own."""

    def __init__(self, app: App, examples: int) -> None:
        self.examples = examples
        self._app, self._stopping = app, asyncio.Event()
        self._loop = asyncio.new_event_loop()
        self._ready, self.url, self.known = threading.Event(), "", {}
        self._thread = threading.Thread(target=self._run, name="served")

    def __enter__(self) -> Service:
        self._thread.start()
        assert self._ready.wait(SECONDS)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join(SECONDS)
        self._loop.close()

    def _run(self) -> None:
        self._loop.run_until_complete(self._serve())

    async def _serve(self) -> None:
        # Nobody works details, papers and reports: they need models.
        async with self._app.worker(queues=["default", "workflows"]):
            self.known = await self._fill()
            await serve(
                self._app, Address("127.0.0.1", 0), worker=False, stopping=self._stopping, announce=self._announce
            )

    async def _fill(self) -> dict[str, str]:
        return await _fill(self._app)

    def _announce(self, url: str) -> None:
        self.url = url
        self._ready.set()


async def _fill(app: App) -> dict[str, str]:
    """Make one thing of each kind, so that ids and names of the document can be those of something."""
    handle = await app.find_task("double").enqueue(1)
    await handle.result("10s")
    batch = await app.submit(app.find_task("fail"), [1, 2])
    await batch.wait("10s")
    run = await app.start("twice", 3)
    await run.result("10s")
    task = await submit_papers(app, PapersRequest("review", "0", ("0",)))
    desk = details.desk_of(app)
    assert desk is not None
    made = (await desk.submit({"type": "skill", "count": 3})).batch_id
    return {
        "job_id": str(handle.id), "batch_id": str(batch.id), "run_id": str(run.id), "name": "default",
        "task_id": str(task.id), "details_id": made,
    }  # fmt: skip


def everything(settings: Settings) -> App:
    """Return an app that serves every route there is."""
    app = shop(settings)
    details.register(app)
    papers.register(app)
    return app


MEMORY = Settings(queue=QueueSettings(type="memory"), llm=ModelSettings(model="nobody", base_url="http://127.0.0.1:9"))


async def _migrated(name: str) -> None:
    async with stores_on(name, None):
        pass


@pytest.fixture(scope="module", params=["memory", pytest.param("postgres", marks=pytest.mark.slow)])
def service(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service on a store, with a worker, and with a document and a template to name."""
    folder = tmp_path_factory.mktemp("papers")
    (folder / "0").write_text("A study.", encoding="utf-8")
    (folder / "0.yaml").write_text(
        "name: study\nversion: 1\nfields:\n  - {name: size, type: integer, description: How many}\n", encoding="utf-8"
    )
    settings = replace(MEMORY, papers=PaperSettings(folder, folder))
    if request.param == "postgres":
        schema_name = new_schema_name()
        asyncio.run(_migrated(schema_name))
        settings = replace(settings, queue=QueueSettings(url=shared_server().dsn, schema=schema_name))
    with Service(everything(settings), MANY if request.param == "postgres" else FEW) as running:
        yield running


#: Streams of events end when what they follow does: they have tests of their own.
DOCUMENT: dict[str, Any] = make_service(everything(MEMORY)).openapi()
schema = schemathesis.openapi.from_dict(DOCUMENT).exclude(path_regex="/events$")


# Without the plugin of the package for pytest, which patches what writes tracebacks.
@pytest.mark.parametrize("operation", [found.ok() for found in schema.get_all_operations()], ids=lambda one: one.label)
def test_answers_are_as_the_document_says(operation: Any, service: Service) -> None:
    """No request is answered by an error of the server, or by a status, a type or a shape that is not documented."""

    @hypothesis_settings(
        max_examples=service.examples, deadline=None, derandomize=True, database=None,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(case=operation.as_strategy())
    def ask(case: Any) -> None:
        case.call_and_validate(base_url=service.url, checks=CHECKS, timeout=SECONDS)
        own = {name: value for name, value in service.known.items() if name in case.path_parameters}
        if "/details/" in case.path and own:
            own = {"batch_id": service.known["details_id"]}
        if own:
            case.path_parameters = {**case.path_parameters, **own}
            case.call_and_validate(base_url=service.url, checks=CHECKS, timeout=SECONDS)

    ask()
