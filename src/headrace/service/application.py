"""The service: its routes, and what stands before them."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, FastAPI

from headrace import __version__
from headrace.app import App
from headrace.apps.flows.webhooks import Listeners
from headrace.service import events, handles, health, runs, signals, webhooks, workflows
from headrace.service.guard import Guard
from headrace.service.problems import add_handlers

PREFIX = "/api/v1"
#: Groups of routes below the prefix.
GROUPS = (workflows.router, runs.router, signals.router, events.router, handles.router)

_PROBLEM: dict[str, Any] = {
    "description": "a problem: `code` is a stable word, `detail` says what to do",
    "content": {"application/problem+json": {"schema": {"type": "object", "required": ["status", "code", "detail"]}}},
}


def make_service(app: App) -> FastAPI:
    """Return the service of an app, which has to be open while it answers."""
    service = FastAPI(
        title="Headrace", version=__version__, openapi_url=f"{PREFIX}/openapi.json", docs_url=None, redoc_url=None,
        redirect_slashes=False,
    )  # fmt: skip
    service.state.headrace = app
    api = APIRouter(prefix=PREFIX, responses={"4XX": _PROBLEM, "503": _PROBLEM})
    for group in GROUPS:
        api.include_router(group)
    service.include_router(api)
    service.include_router(health.router)
    if webhooks.runs_flows(app):
        service.state.listeners = Listeners(app)
        service.include_router(webhooks.router)
    add_handlers(service)
    service.add_middleware(Guard)
    return service
