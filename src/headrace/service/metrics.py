"""`/metrics`: figures of queues, outbox, workers, models, applications, Ray and requests, as Prometheus reads them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from fastapi import APIRouter, Request
from fastapi.responses import PlainTextResponse

from headrace.app import App
from headrace.apps.details.desk import desk_of
from headrace.apps.details.folding import expose_details
from headrace.apps.memory.exposition import expose_memory
from headrace.engine.exposition import expose, expose_outbox, expose_workers
from headrace.engine.llm_exposition import expose_models
from headrace.engine.llm_queries import read_figures
from headrace.engine.scale_exposition import expose_scale
from headrace.engine.slot_exposition import expose_slots
from headrace.engine.worker_queries import list_workers
from headrace.service.document import PROBLEM
from headrace.service.served import Served
from headrace.wiring.ray_figures import ray_figures
from headrace.wiring.scaling import scale_signals

TYPE = "text/plain; version=0.0.4; charset=utf-8"

router = APIRouter(tags=["health"])


@router.get(
    "/metrics", response_class=PlainTextResponse, responses={200: {"content": {"text/plain": {}}}, 503: PROBLEM}
)
async def metrics(app: Served, request: Request) -> PlainTextResponse:
    """Return figures of queues, outbox, workers, models, details and memory, and of the requests to this process."""
    parts = [await part(app) for part in PARTS]
    own = [request.app.state.http_figures.expose(), request.app.state.audit.expose()]
    return PlainTextResponse("".join([*parts, *own]), media_type=TYPE)


async def _queues(app: App) -> str:
    # They are counted once: of large queues that is the most of what a scrape costs.
    stats = await app.runtime.stores.inspect.queue_stats()
    return expose(stats) + expose_scale(await scale_signals(app, stats=stats))


async def _outbox(app: App) -> str:
    events = app.runtime.stores.events
    if events is None:
        return ""
    return expose_outbox(await events.outbox.outbox_stats(), await events.log.log_groups())


async def _workers(app: App) -> str:
    _, found = await list_workers(app.runtime.stores)
    return expose_workers(found) + expose_slots(found)


async def _models(app: App) -> str:
    return expose_models(await read_figures(app.runtime.stores))


async def _details(app: App) -> str:
    return "" if desk_of(app) is None else await expose_details(app)


async def _memory(app: App) -> str:
    return await expose_memory(app)


async def _ray(app: App) -> str:
    return await ray_figures(app.settings)


#: What is written, in this order; each is asked for its text when somebody reads.
PARTS: tuple[Callable[[App], Awaitable[str]], ...] = (
    _queues, _outbox, _workers, _models, _details, _memory, _ray,
)  # fmt: skip
