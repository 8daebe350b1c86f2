"""What is told of the end of a batch beside its feed: to whoever asked for a message, and in its last event."""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from headrace.apps.details.request import DetailsRequest
from headrace.model.errors import InvalidInputError
from headrace.webhooks import delivery

if TYPE_CHECKING:
    from headrace import App

LOG = logging.getLogger("headrace.details")

#: The type of the message.
COMPLETED_MESSAGE = "details.completed"
#: Characters of items that the last event has room for: it must not be too large to leave.
MOST_LEFT_OVER = 200_000


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
            plain = {name: value for name, value in item.items() if name != "subtask_id"}
            found.setdefault(item["subtask_id"], []).append(plain)
    return found
