"""Queues: how full each is and whether it flows; pausing, resuming, running again what failed, cleaning up."""

from __future__ import annotations

from headrace.dashboard.page import Context, Page, View
from headrace.engine.operations import find_queue
from headrace.engine.worker_queries import list_workers
from headrace.model.errors import NotFoundError
from headrace.model.names import check_name
from headrace.model.scale_values import ScaleSignal
from headrace.model.stats import QueueStats
from headrace.wiring.scaling import scale_signals

#: Rows of the list; a store with more queues shows those that live most.
MOST = 100


async def queues(view: View) -> Context:
    """Return the queues, those with most to do first, or those whose name holds what is asked for."""
    wanted = view.query.get("name", "").strip()
    found = [queue for queue in await _stats(view) if wanted in queue.name]
    found.sort(key=lambda queue: (-queue.ready - queue.running - queue.scheduled, queue.name))
    return {"queues": found[:MOST], "left_out": len(found) - MOST, "wanted": wanted}


async def queue(view: View) -> Context:
    """Return one queue, with the workers that serve it."""
    name = check_name("queue", view.params["name"])
    found = await _find(view, name)
    now, workers = await list_workers(view.app.runtime.stores)
    scale = await view.answer(f"scale {name}", lambda: _scale(view, name), seconds=5)
    history = view.history(f"queue {name}")
    history.note(now or view.now, (found.rate_in, found.rate_out, float(found.ready)))
    return {
        "scale": scale,
        "queue": found, "now": now or view.now, "lines": [history.line(place) for place in range(3)],
        "workers": [worker for worker in workers if name in worker.queues],
    }  # fmt: skip


async def _stats(view: View) -> list[QueueStats]:
    return await view.answer("queues", view.app.runtime.stores.inspect.queue_stats, seconds=0.5)


async def _scale(view: View, name: str) -> ScaleSignal | None:
    """Return how many workers the queue wants; None of one that nobody used yet."""
    try:
        signals = await scale_signals(view.app, queue=name)
    except NotFoundError:
        return None
    return signals[0] if signals else None


async def _find(view: View, name: str) -> QueueStats:
    """Return the figures of a queue; empty ones where the app alone knows it. Raises NotFoundError."""
    found = [one for one in await _stats(view) if one.name == name]
    if not found and name in {*view.app.registry.queue_rules, *view.app.registry.queues()}:
        return QueueStats(name, 0, 0, 0, 0, 0, 0, 0, None, 0.0, 0.0, 0, paused=False)
    return found[0] if found else await find_queue(view.app.runtime.stores.inspect, name)


PAGES = (
    Page("queues", "/queues", queues, title="Queues", group="System", query=frozenset({"name"})),
    Page("queue", "/queues/{name}", queue),
)
