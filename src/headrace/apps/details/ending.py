"""The end of a batch: once in its feed, and the same to those who keep figures and to whoever asked for a message."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Collection, Iterable, Mapping
from contextvars import Context
from typing import TYPE_CHECKING, Any

from headrace.apps.details.means import Means, Order, plain_item
from headrace.apps.details.names import AGGREGATE, COMPLETED, DONE_FEED, ENDED, departure_id
from headrace.apps.details.request import DetailsRequest, parse_request
from headrace.apps.details.tallying import Tally
from headrace.apps.details.trigger import batch_ended
from headrace.model.errors import InvalidInputError
from headrace.webhooks import delivery

if TYPE_CHECKING:
    from headrace import App

LOG = logging.getLogger("headrace.details")

#: The type of the message.
COMPLETED_MESSAGE = "details.completed"
#: Characters of items that the last event has room for: it must not be too large to leave.
MOST_LEFT_OVER = 200_000


async def tell_end(  # noqa: PLR0913 - what is told, and what it is told of
    means: Means, request: DetailsRequest, batch_id: str, *, tally: Tally, ending: Mapping[str, Any],
    items: list[dict[str, Any]],
) -> dict[str, Any]:  # fmt: skip
    """Tell the end of a batch and return it as it was told first: whoever comes later tells the rest of that.

    To its feed, to whoever keeps figures, to the webhook, and to the bus. `items`: those that `ending` counts.
    """
    app, feed = means.app, means.feed(batch_id)
    number = await feed.append(ENDED, ending, key=ENDED)
    [entry] = await feed.read(number - 1, 1)
    told = dict(entry.data)
    figures = {"batch_id": batch_id, **tally.figures(request, told)}
    await app.feed(DONE_FEED).append("done", figures, key=batch_id)
    await batch_ended(app)
    await tell_webhook(app, request, batch_id, told)
    if told != ending:
        items = await means.items(batch_id)  # another one told it: items of its count go with it
    await _emit_end(app, request, batch_id, last_event(request, batch_id, told, left_over(items, tally.told)))
    return told


async def _emit_end(app: App, request: DetailsRequest, batch_id: str, payload: Mapping[str, Any]) -> None:
    """Let the last event of a batch leave, once, whoever tells the end: its id follows from the batch alone.

    Within a task the id of an event is the task's own; so it leaves from outside of whatever task runs here.
    """
    emitted = app.emit(
        COMPLETED, payload, key=batch_id, aggregate_type=AGGREGATE, aggregate_id=request.session_id,
        correlation_id=departure_id(batch_id, 1), causation_id=batch_id,
    )  # fmt: skip
    await asyncio.create_task(emitted, name="headrace-details-end", context=Context())


async def end_early(means: Means, told: Mapping[str, Any], batch_id: str, status: str) -> dict[str, Any]:
    """End a batch that nobody goes on with, unless it has ended; `told`: the arguments of its jobs.

    Its parts that have not gone out do not go any more. One whose items are all there is completed all the same.
    """
    await means.stop_parts(batch_id)
    request, tally = parse_request(told["request"]), await _tally(means, batch_id)
    order = Order(request.first_count, told["plan"]["asked_at"], time.time)
    delivered = await means.delivered(batch_id)
    items = delivered.items
    status = "" if len(items) >= request.count else status
    first = await means.first_response(batch_id, delivered, order)
    ending = tally.ending(request, len(items), order.seconds, first, status)
    return await tell_end(means, request, batch_id, tally=tally, ending=ending, items=items)


async def _tally(means: Means, batch_id: str) -> Tally:
    """Return what the parts of a batch have come to, as far as they told."""
    tally = Tally()
    # Parts written by the coordinator answer as those of the first departure, also where none went out.
    for number in range(1, max(1, len(await means.departures(batch_id))) + 1):
        for told in await means.answers(departure_id(batch_id, number)):
            tally.add(told)
    for told in await means.failures(batch_id):
        tally.add_sums(told)
    return tally


def last_event(
    request: DetailsRequest, batch_id: str, ending: Mapping[str, Any], left: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the payload of the last event of a batch; `left`: what no other event tells of."""
    about = {name: getattr(request, name) for name in ("session_id", "type", "style", "priority")}
    return {**about, "batch_id": batch_id, **ending, "left_over": left}


async def tell_webhook(app: App, request: DetailsRequest, batch_id: str, ending: Mapping[str, Any]) -> None:
    """Let the message of a batch's end be delivered, once, where one was asked for."""
    if request.webhook is None:
        return
    about = {"id": batch_id, "session_id": request.session_id, "type": request.type}
    try:
        await delivery(app, request.webhook, COMPLETED_MESSAGE, {**about, **ending}, key=f"details/{batch_id}")
    except InvalidInputError as error:
        # It was allowed when the batch was asked for; the batch has ended all the same.
        LOG.warning("batch %s has ended, and its webhook cannot be told: %s", batch_id, error)


def left_over(items: Iterable[Mapping[str, Any]], told: Collection[str]) -> dict[str, list[dict[str, Any]]]:
    """Return what was delivered of parts that no event tells of, since they became dead letters midway.

    >>> left_over([{"subtask_id": "b:0", "name": "x"}, {"subtask_id": "b:1", "name": "y"}], {"b:0"})
    {'b:1': [{'name': 'y'}]}
    """
    found: dict[str, list[dict[str, Any]]] = {}
    room = MOST_LEFT_OVER
    for item in items:
        if item["subtask_id"] in told:
            continue
        room -= len(json.dumps(item))
        if room >= 0:
            found.setdefault(item["subtask_id"], []).append(plain_item(item))
    return found
