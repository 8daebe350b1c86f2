"""The consumer of changes: it notes whose buffers are to be looked at, and has that done, once however much comes.

Guaranteed: the note of a user, the job of the look and the notes of the events are stored in one transaction; a look
that begins after it sees the change. It adds nothing to a buffer. Not guaranteed: one look per change.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from headrace import App, InvalidInputError, Task
from headrace.apps.memory.changes.reading import TABLE, record_of
from headrace.apps.memory.changes.trigger import topic_of
from headrace.apps.memory.opening import CONSUME, RETRIES
from headrace.apps.memory.rules.priority import priority_of, score
from headrace.apps.memory.tables import MemoryTables
from headrace.events import Agent, Event, EventsContext, OnError

AGENT = "memory_consumer"
#: How long a message waits for others to be handled with, while some are being handled.
MAX_WAIT = "5s"
#: What the operations are called in types of events, of those that may bring something into a buffer.
VERBS = ("Created", "Updated", "Read")


def register_consumer(app: App, check: Task[..., Any]) -> Agent:
    """Register the agent that reads changes of the buffer table, and enqueues `check(user_id)` for who has some.

    Where it reads follows from `[memory] prefix` and `schema`. A change that is wrong is a dead letter at once.
    """
    memory = app.settings.memory
    options = {"topics": (topic_of(memory.schema, memory.prefix),), "retry": RETRIES[CONSUME], "classify": _judge}
    agent = Agent(app, AGENT, batch_size=memory.consume_batch_size, max_wait=MAX_WAIT, **options)  # type: ignore[arg-type]
    tables = MemoryTables(app)

    def is_for_us(event: Event) -> bool:
        return record_of(event, read_snapshots=memory.read_snapshots) is not None

    async def note_users(connection: Any, since: Mapping[str, datetime], ctx: EventsContext) -> None:
        own, now = tables.on(connection), datetime.now(UTC)
        # In one order, so that two consumers wait for each other instead of deadlocking.
        noted = await own.note_checks(sorted(since))
        users = await own.users(noted)
        for user_id in noted:
            urgency = score(users[user_id].level if user_id in users else 0, now - since[user_id], "buffer", 0)
            ctx.enqueue(check.options(priority=priority_of(urgency)), user_id)

    @agent.on(*(f"{type_name(memory.prefix)}.{TABLE}.{verb}" for verb in VERBS), where=is_for_us)
    async def consume(events: list[Event], ctx: EventsContext) -> None:
        since: dict[str, datetime] = {}
        for event in events:
            record = record_of(event, read_snapshots=memory.read_snapshots)
            if record is not None:
                since[record.user_id] = min(record.timestamp, since.get(record.user_id, record.timestamp))
        ctx.in_transaction(note_users, since, ctx)

    return agent


def _judge(event: Event, error: Exception) -> OnError:
    """A wrong change stays wrong; anything else may pass."""
    return OnError.DEAD_LETTER if isinstance(error, InvalidInputError) else OnError.RETRY


def type_name(prefix: str) -> str:
    """Return a prefix of topics as it stands in types of events: letters, digits and _, a letter first.

    >>> type_name("memory"), type_name("eu-1"), type_name("1st")
    ('memory', 'eu_1', 'X1st')
    """
    fit = prefix.replace("-", "_")
    return (fit if fit[:1].isalpha() else f"X{fit}")[:64]
