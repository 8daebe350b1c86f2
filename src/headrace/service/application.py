"""The service: its routes, and what stands before them."""

from __future__ import annotations

from fastapi import APIRouter, Depends, FastAPI

from headrace import __version__
from headrace.app import App
from headrace.apps.flows.webhooks import Listeners
from headrace.service import (
    batches,
    dead_letters,
    details,
    events,
    following,
    handles,
    health,
    jobs,
    memory,
    memory_users,
    metrics,
    models,
    papers,
    queues,
    reports,
    runs,
    schedules,
    signals,
    webhooks,
    workers,
    workflows,
)
from headrace.service.access import Access
from headrace.service.document import ABOUT, PROBLEM, add_security, operation_id
from headrace.service.gate import Gate
from headrace.service.guard import Guard
from headrace.service.http_figures import Counted, HttpFigures
from headrace.service.problems import add_handlers
from headrace.service.queries import check_query
from headrace.service.streams import Crowd, Streams

PREFIX = "/api/v1"
#: Groups of routes below the prefix.
GROUPS = (
    jobs.router, batches.router, queues.router, workers.router, schedules.router, dead_letters.router, models.router,
    following.router, workflows.router, runs.router, signals.router, events.router, handles.router,
)  # fmt: skip


def make_service(app: App, access: Access | None = None) -> FastAPI:
    """Return the service of an app, which has to be open while it answers; unless told, it is for this machine alone.

    Its gate is `service.state.gate`, to be closed while the app is still open.
    """
    service = FastAPI(
        title="Headrace", version=__version__, openapi_url=f"{PREFIX}/openapi.json", docs_url=None, redoc_url=None,
        redirect_slashes=False, description=ABOUT, generate_unique_id_function=operation_id,
    )  # fmt: skip
    service.state.headrace = app
    api = APIRouter(
        prefix=PREFIX, responses={"4XX": PROBLEM, "503": PROBLEM}, dependencies=[Depends(check_query)]
    )  # fmt: skip
    for group in GROUPS:
        api.include_router(group)
    if details.makes_details(app):
        api.include_router(details.router)
    if papers.takes_papers(app):
        api.include_router(papers.router)
    if reports.makes_reports(app):
        api.include_router(reports.router)
    if memory.makes_memory(app):
        api.include_router(memory.router)
        api.include_router(memory_users.router)
    service.include_router(api)
    service.include_router(health.router)
    service.include_router(metrics.router)
    if webhooks.runs_flows(app):
        service.state.listeners = Listeners(app)
        service.include_router(webhooks.router)
    add_handlers(service)
    gate = service.state.gate = Gate.of(service, access or Access(), lambda: app.runtime.stores.tokens)
    add_security(service, gate.permits, gate.access)
    service.state.streams = Streams(app.settings.service.most_streams)
    service.add_middleware(Guard, gate=gate)
    service.state.http_figures = HttpFigures()
    service.add_middleware(Crowd, streams=service.state.streams)
    service.add_middleware(Counted, figures=service.state.http_figures, prefix=PREFIX)
    return service
