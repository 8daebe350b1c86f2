"""The service against its own OpenAPI: what it says may be asked is asked, within and beyond its bounds."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from headrace import App
from headrace.service.application import make_service
from headrace.service.serving import Address, serve
from tests.unit.service_calls import shop

#: The service runs in a thread beside, and its jitter is taken for a strategy's.
pytestmark = pytest.mark.filterwarnings("ignore:Do not use the `random` module")
#: Requests of each operation, unless the environment asks for more.
EXAMPLES = int(os.environ.get("HEADRACE_TEST_EXAMPLES", "12"))
CHECKS = [
    not_a_server_error, status_code_conformance, content_type_conformance, response_headers_conformance,
    response_schema_conformance,
]  # fmt: skip
SECONDS = 20


class Service:
    """The service of an app in a thread of its own."""

    def __init__(self, app: App) -> None:
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
        async with self._app.worker():
            self.known = await _fill(self._app)
            await serve(
                self._app, Address("127.0.0.1", 0), worker=False, stopping=self._stopping, announce=self._announce
            )

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
    return {"job_id": str(handle.id), "batch_id": str(batch.id), "run_id": str(run.id), "name": "default"}


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    """A service on the memory store with a worker."""
    with Service(shop()) as running:
        yield running


#: Streams of events end when what they follow does: they have tests of their own.
DOCUMENT: dict[str, Any] = make_service(shop()).openapi()
schema = schemathesis.openapi.from_dict(DOCUMENT).exclude(path_regex="/events$")


# Without the plugin of the package for pytest, which patches what writes tracebacks.
@pytest.mark.parametrize("operation", [found.ok() for found in schema.get_all_operations()], ids=lambda one: one.label)
def test_answers_are_as_the_document_says(operation: Any, service: Service) -> None:
    """No request is answered by an error of the server, or by a status, a type or a shape that is not documented."""

    @settings(
        max_examples=EXAMPLES, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
    )
    @given(case=operation.as_strategy())
    def ask(case: Any) -> None:
        case.call_and_validate(base_url=service.url, checks=CHECKS, timeout=SECONDS)
        own = {name: value for name, value in service.known.items() if name in case.path_parameters}
        if own:
            case.path_parameters = {**case.path_parameters, **own}
            case.call_and_validate(base_url=service.url, checks=CHECKS, timeout=SECONDS)

    ask()
