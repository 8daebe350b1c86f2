"""The agents of details: who writes names of characters, and who writes everything else of a world."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from headrace.apps.details.kinds import CHARACTERS, WORLD, kind_of
from headrace.apps.details.means import Means, Order
from headrace.apps.details.names import CREATED, REQUESTED
from headrace.apps.details.wording import Slice, parallel_calls
from headrace.apps.details.writing import Part, write
from headrace.events import Agent, AgentContext, Event
from headrace.model.backoff import Backoff

if TYPE_CHECKING:
    from headrace import App

#: Beyond the short tries within the handler; then the part is a dead letter.
RETRY = Backoff.exponential(max_attempts=4, base="250ms", cap="5s")
TIMEOUT = "5m"
#: Seconds after its request from which a part looks whether its batch has ended without it. A sooner end is that of
#: whoever cancels at once: it costs what is under way, and to look for it would hold up all others.
LATE = 1.0
#: Who may write; handles count the dead letters of these.
AGENTS = (CHARACTERS, WORLD)


def register_agents(app: App, means: Means, *, concurrency: int) -> tuple[Agent, ...]:
    """Add the agents to an app and return them."""
    return tuple(_agent(app, means, name, concurrency) for name in AGENTS)


def _agent(app: App, means: Means, name: str, concurrency: int) -> Agent:
    # Parts of one session are written side by side: their order is no matter.
    agent = Agent(app, name, concurrency=concurrency, ordered=False, retry=RETRY, timeout=TIMEOUT)

    @agent.on(REQUESTED, where=lambda event: _writer_of(event) == name)
    async def write_part(event: Event, ctx: AgentContext) -> None:
        part, asked = part_of(event.payload), event.payload
        if part.order.seconds >= LATE and await means.ending(part.batch_id) is not None:
            return  # nobody waits for it
        written = await write(means, part)
        ctx.emit(CREATED, {"session_id": asked["session_id"], "task_id": asked["task_id"], **written.to_json()})

    return agent


def _writer_of(event: Event) -> str:
    """Return who writes the part that an event asks for."""
    payload = event.payload if isinstance(event.payload, dict) else {}
    return kind_of(payload.get("type", "")).agent


def part_of(asked: dict[str, Any]) -> Part:
    """Return the part that the payload of a request asks for.

    >>> asked = {"task_id": "b:0", "batch_id": "b", "type": "skill", "count": 3, "style": "", "batch_index": 0,
    ...          "batches": 2, "calls": 2, "first_call": 0, "scope": "s", "first_count": 3, "asked_at": 0.0}
    >>> [call.count for call in part_of(asked).calls]
    [2, 1]
    """
    calls = parallel_calls(
        Slice(
            subtask_id=asked["task_id"], type=asked["type"], count=asked["count"], style=asked["style"],
            batch_index=asked["first_call"], batches=asked["batches"],
        ),
        asked["calls"],
    )  # fmt: skip
    order = Order(asked["first_count"], asked["asked_at"], time.time)
    avoid, places = (tuple(asked.get(name, ())) for name in ("avoid", "places"))
    return Part(asked["batch_id"], asked["task_id"], calls, asked["scope"], order, avoid, places)
