"""The app of the event campaign: an agent whose effects are counted, one that hears its answers, a task that waits."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

from headrace import App, Backoff, Context
from headrace.events import Agent, AgentContext, Event

ASKED, ANSWERED = "Campaign.Order.Asked", "Campaign.Order.Answered"
#: The environment variable with the folder where a campaign opens gates.
GATES = "CAMPAIGN_GATES"
#: What the builder notes of each request it answered, and the auditor of each answer; in the order of commits per key.
TABLES = """
CREATE TABLE effects (n bigserial PRIMARY KEY, event_id text NOT NULL, key text NOT NULL, seq int NOT NULL);
CREATE TABLE heard (n bigserial PRIMARY KEY, event_id text NOT NULL, key text NOT NULL, seq int NOT NULL);
"""

app = App()
_PATIENT = Backoff.exponential(max_attempts=3, base="50ms", cap="200ms")
builder = Agent(app, "world_builder", concurrency=16, retry=_PATIENT)
auditor = Agent(app, "auditor", concurrency=8)


@builder.on(ASKED)
async def build(event: Event, ctx: AgentContext) -> None:
    """Answer a request, once its gate is open: one effect and one answer. Some fail first, and some always."""
    given = event.payload
    if given.get("poison") or (given["seq"] % 10 == 3 and ctx.attempt == 1):
        raise RuntimeError("as planned")
    if gate := given.get("gate"):
        await _opened(Path(os.environ[GATES], gate))
    ctx.in_transaction(_note, "effects", event.id, event.aggregate_id, given["seq"])
    ctx.emit(ANSWERED, {"seq": given["seq"]})


@auditor.on(ANSWERED)
async def hear(event: Event, ctx: AgentContext) -> None:
    """Note an answer."""
    ctx.in_transaction(_note, "heard", event.id, event.aggregate_id, event.payload["seq"])


async def _opened(gate: Path) -> None:
    while not gate.exists():
        await asyncio.sleep(0.05)


async def _note(connection: Any, table: str, event_id: str, key: str, seq: int) -> None:
    assert table in ("effects", "heard")
    await connection.execute(f"INSERT INTO {table} (event_id, key, seq) VALUES ($1, $2, $3)", event_id, key, seq)


@app.task(queue="ask", timeout="60s")
async def ask(number: int, ctx: Context) -> list[Any]:
    """Ask, wait without a slot, and return what came of it: the answer, or that there is none."""
    correlation = f"ask-{number}"
    given = {"seq": number, "poison": number % 10 == 7}
    await app.emit(ASKED, given, aggregate_id=correlation, correlation_id=correlation)
    came = await app.wait_for_events(correlation, ANSWERED, timeout="10m", request_types=(ASKED,))
    return [[event.payload["seq"] for event in came.events], len(came.dead)]


def answer_of(number: int) -> list[Any]:
    """Return what `ask` has to return."""
    return [[], 1] if number % 10 == 7 else [[number], 0]
