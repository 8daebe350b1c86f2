"""The service: its routes, and what stands before them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from fastapi import APIRouter, Depends, FastAPI

from headrace import __version__
from headrace.app import App
from headrace.apps.flows.opening import runs_flows
from headrace.apps.flows.webhooks import Listeners
from headrace.apps.memory.opening import makes_memory
from headrace.apps.papers.job import takes_papers
from headrace.apps.report.stages import makes_reports
from headrace.service import (
    audit,
    batch_reads,
    batches,
    dead_letters,
    details,
    events,
    flows,
    following,
    handles,
    health,
    jobs,
    limits,
    memory,
    memory_users,
    metrics,
    models,
    papers,
    papers_values,
    queues,
    reports,
    runs,
    scale,
    schedules,
    signals,
    webhooks,
    workers,
    workflows,
)
from headrace.service.access import Access
from headrace.service.auditing import add_audit
from headrace.service.document import ABOUT, PROBLEM, add_security, operation_id
from headrace.service.gate import Gate
from headrace.service.guard import Guard
from headrace.service.http_figures import Counted, HttpFigures
from headrace.service.pages import Below, add_pages
from headrace.service.problems import add_handlers
from headrace.service.queries import check_query
from headrace.service.streams import Crowd, Streams

PREFIX = "/api/v1"
#: Groups of routes below the prefix.
GROUPS = (
    jobs.router, batches.router, batch_reads.router, queues.router, scale.router, workers.router, schedules.router,
    dead_letters.router, models.router, limits.router, following.router, workflows.router, runs.router,
    signals.router, events.router, handles.router, audit.router,
)  # fmt: skip
#: Groups of applications, with what tells whether an app is that one.
OF_APPS: tuple[tuple[Callable[[App], bool], APIRouter], ...] = (
    (details.makes_details, details.router),
    (takes_papers, papers.router),
    (takes_papers, papers_values.router),
    (makes_reports, reports.router),
    (makes_memory, memory.router),
    (makes_memory, memory_users.router),
    (runs_flows, flows.router),
)


def make_service(app: App, access: Access | None = None) -> FastAPI:
    """Return the service of an app, which has to be open while it answers; unless told, it is for this machine alone.

    Its gate is `service.state.gate`, its audit `service.state.audit`, both to be closed while the app is still open.
    """
    service = FastAPI(
        title="Headrace", version=__version__, openapi_url=f"{PREFIX}/openapi.json", docs_url=None, redoc_url=None,
        redirect_slashes=False, description=ABOUT, generate_unique_id_function=operation_id,
    )  # fmt: skip
    service.state.headrace = app
    access = access or Access()
    _add_routes(service, app)
    add_handlers(service)
    pages = add_pages(service, app, access) if app.settings.service.dashboard else None
    gate = service.state.gate = Gate.of(service, access, lambda: app.runtime.stores.tokens)
    add_security(service, gate.permits, gate.access)
    service.state.streams = Streams(app.settings.service.most_streams)
    refuse = {} if pages is None else {"refuse": partial(pages.refuse, gate.permits)}
    service.add_middleware(Guard, gate=gate, **refuse)
    add_audit(service, app, gate)
    service.state.http_figures = HttpFigures()
    service.add_middleware(Crowd, streams=service.state.streams)
    service.add_middleware(Counted, figures=service.state.http_figures, prefix=PREFIX)
    if access.base:
        service.add_middleware(Below, base=access.base)
    return service


def _add_routes(service: FastAPI, app: App) -> None:
    """Give a service the routes of its app: those of all, and those of the application it is."""
    api = APIRouter(
        prefix=PREFIX, responses={"4XX": PROBLEM, "503": PROBLEM}, dependencies=[Depends(check_query)]
    )  # fmt: skip
    for group in (*GROUPS, *(group for belongs, group in OF_APPS if belongs(app))):
        api.include_router(group)
    service.include_router(api)
    service.include_router(health.router)
    service.include_router(metrics.router)
    if runs_flows(app):
        service.state.listeners = Listeners(app)
        service.include_router(webhooks.router)
