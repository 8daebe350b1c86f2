"""`/batches/ID/events` and `/runs/ID/events`: what happens to batches and runs, as it happens."""

from __future__ import annotations

from functools import partial

from fastapi import APIRouter, Request, Response

from headrace.engine.following import batch as batches
from headrace.engine.following import run as runs
from headrace.model.ids import parse_id
from headrace.service import stream_shapes
from headrace.service.served import Served
from headrace.service.sse import LastSeen, Source, stream
from headrace.service.stream_shapes import responses_of

_BATCH = """retry: 1000

id: 1
event: item
data: {"index":0,"status":"succeeded","job":"01980000-0000-7000-8000-000000000001","cost":null,"result":4}

id: 2
event: closed
data: {"round":1,"outcome":"succeeded","total":1,"succeeded":1,"failed":0,"cancelled":0}

"""
_RUN = """retry: 1000

id: 1
event: node
data: {"path":"double","state":"succeeded","attempts":0,"started_at":null,"finished_at":null,"error":null}

id: 2
event: ended
data: {"state":"succeeded","finished_at":"2031-01-31T12:00:00Z","error":null}

"""

router = APIRouter()


@router.get(
    "/batches/{batch_id}/events", tags=["batches"], responses=responses_of(stream_shapes.BATCH, _BATCH),
    response_class=Response, operation_id="follow_batch",
)  # fmt: skip
async def batch_events(app: Served, request: Request, batch_id: str, after: LastSeen) -> Response:
    """Follow a batch: `item` for each item that has ended, `round` when more are added, and at last `closed`.

    Results above 16 KiB are left out, and read by `/batches/ID/results`.
    """
    runtime, found = app.runtime, parse_id("batch id", batch_id)
    view = await app.batch(found).view()
    grows = runtime.growing.grown(
        batches.batch_feed(found), partial(batches.BatchGrower, runtime.stores.inspect, runtime.feeds, found)
    )
    until = partial(batches.is_last, round_number=view.round)
    return await stream(Source(batches.batch_feed(found), until, grows), request, after)


@router.get(
    "/runs/{run_id}/events", tags=["runs"], responses=responses_of(stream_shapes.RUN, _RUN),
    response_class=Response, operation_id="follow_run",
)  # fmt: skip
async def run_events(app: Served, request: Request, run_id: str, after: LastSeen) -> Response:
    """Follow a run: `state`, `node` for each node that is seen running or has ended, and at last `ended`.

    A node that has ended runs no more: where several services follow a run, a `running` that one of them saw before may
    stand behind the end. Outputs are read by `/runs/ID` and `/runs/ID/nodes/PATH`.
    """
    runtime, run = app.runtime, app.find_run(run_id)
    await run.view()
    name = runs.run_feed(run.id)
    grows = runtime.growing.grown(name, partial(runs.RunGrower, runtime.means, runtime.feeds, run.id))
    return await stream(Source(name, runs.is_last, grows), request, after)
