"""The service of an app in this process, and requests to it without a socket."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx2

from headrace import App, Backoff, chain
from headrace.service.application import make_service
from headrace.settings import Settings

URL = "http://localhost:8400"
JSON = {"content-type": "application/json"}


def shop(settings: Settings | None = None) -> App:
    """Return an app with a workflow that doubles a number, one that fails, and one that waits for a signal."""
    app = App("memory://") if settings is None else App(settings=settings)

    @app.task
    async def double(number: int) -> int:
        return 2 * number

    @app.task(retry=Backoff.none())
    async def fail(number: int) -> int:
        raise ValueError(f"cannot take {number}")

    @app.task
    async def approve(number: int) -> Any:
        return await app.wait_for(f"approve/{number}", "1m")

    app.workflow("twice", chain(double.s(), double.s()))
    app.workflow("broken", chain(double.s(), fail.s()))
    app.workflow("approval", chain(approve.s()))
    return app


@asynccontextmanager
async def served(app: App, *, worker: bool = True) -> AsyncIterator[httpx2.AsyncClient]:
    """Open an app with its service."""
    async with app.worker() if worker else app:
        transport = httpx2.ASGITransport(make_service(app), raise_app_exceptions=False)
        async with httpx2.AsyncClient(transport=transport, base_url=URL) as client:
            yield client


async def start(client: httpx2.AsyncClient, workflow: str, given: Any, **more: Any) -> str:
    """Start a run and return its id."""
    answer = await client.post("/api/v1/runs", json={"workflow": workflow, "input": given, **more})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["run"])


def code_of(answer: httpx2.Response) -> str:
    """Return the stable word of an answer that must tell of a problem."""
    assert answer.headers["content-type"] == "application/problem+json", answer.text
    document: Mapping[str, Any] = answer.json()
    assert document["status"] == answer.status_code
    assert document["detail"] and document["title"]
    return str(document["code"])
